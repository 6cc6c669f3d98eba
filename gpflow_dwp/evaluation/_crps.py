"""The continuous ranked probability score of a mixture of normals, each target's own."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.optional import import_optional

__all__ = ["normal_mixture_crps"]

_MAX_PAIRS = 2**20


def normal_mixture_crps(truth: Array, mean: Array, deviation: Array) -> Array:
    """Return the exact scores, [N].

    :param truth: Targets, [N].
    :param mean: Means of the components, [S, N].
    :param deviation: Their standard deviations, [S, N].
    :raises ImportError: If scoringrules is not installed.
    """
    scoringrules = import_optional("scoringrules", "cli")
    # Pairs of components are formed, S² for each point: a block of points at a time.
    size = max(1, _MAX_PAIRS // len(mean) ** 2)
    blocks = [slice(start, start + size) for start in range(0, len(truth), size)]
    parts = ((truth[block], mean.T[block], deviation.T[block]) for block in blocks)
    return np.concatenate([scoringrules.crps_mixnorm(*part, backend="numpy") for part in parts])
