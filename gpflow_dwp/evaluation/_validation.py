"""Arguments that describe a mixture of normals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array

__all__ = ["check_mixture"]


def check_mixture(means: npt.ArrayLike, variances: npt.ArrayLike) -> tuple[Array, Array]:
    """Both as float64 arrays of one shape [S, N], the second one as standard deviations.

    :raises ValueError: If the shapes differ or are no [S, N], or a variance is not positive.
    """
    mean, variance = np.asarray(means, np.float64), np.asarray(variances, np.float64)
    if mean.ndim != 2 or mean.shape != variance.shape or not len(mean):
        raise ValueError(
            "means and variances must both have shape [S, N], got "
            f"{list(mean.shape)} and {list(variance.shape)}"
        )
    if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance > 0.0).all()):
        raise ValueError("means must be finite, and variances finite and positive")
    return mean, np.sqrt(variance)
