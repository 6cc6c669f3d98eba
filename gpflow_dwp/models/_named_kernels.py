"""Kernels that can be asked for by name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence

import gpflow
import numpy as np
from gpflow.kernels import Kernel

from gpflow_dwp.validation import check_choice

__all__ = ["KERNELS", "make_kernels", "positive_by_exp"]

KERNELS: dict[str, Callable[..., Kernel]] = {
    kernel.__name__: kernel
    for kernel in (
        gpflow.kernels.ArcCosine,
        gpflow.kernels.Exponential,
        gpflow.kernels.Matern12,
        gpflow.kernels.Matern32,
        gpflow.kernels.Matern52,
        gpflow.kernels.RationalQuadratic,
        gpflow.kernels.SquaredExponential,
    )
}
"""Kernels that can be asked for by name, with relevance determination in the first layer."""


def make_kernels(kernel: str | Sequence[Kernel], depth: int, num_inputs: int) -> list[Kernel]:
    """Make one kernel for each layer.

    :param kernel: A name in :data:`KERNELS`, or ``depth`` kernels.
    :param depth: Number of layers.
    :param num_inputs: D, the number of lengthscales of the first kernel.
    :raises ValueError: If the name is unknown, something is no kernel, or the number of kernels is
        not ``depth``.
    """
    if isinstance(kernel, Kernel):
        raise ValueError(
            f"kernel must be a name or a sequence of depth={depth} kernels, got one kernel, "
            f"{type(kernel).__name__}."
        )
    if not isinstance(kernel, str):
        kernels = list(kernel) if isinstance(kernel, Iterable) else [kernel]
        for one in kernels:
            if not isinstance(one, Kernel):
                raise ValueError(
                    f"kernel must be a name or a sequence of depth={depth} kernels, got {one!r}."
                )
        if len(kernels) != depth:
            raise ValueError(f"kernel must hold depth={depth} kernels, got {len(kernels)}.")
        return kernels
    check_choice(KERNELS, kernel=kernel)
    relevances = "weight_variances" if kernel == "ArcCosine" else "lengthscales"
    with positive_by_exp():
        first = KERNELS[kernel](**{relevances: np.ones(num_inputs)})
        return [first, *(KERNELS[kernel]() for _ in range(depth - 1))]


def positive_by_exp() -> contextlib.AbstractContextManager[None]:
    """Give new positive parameters a logarithmic scale.

    Adam's steps then change variances and lengthscales by one factor, however large they are; with
    GPflow's default, softplus, large values are slow to reach.
    """
    config = dataclasses.replace(gpflow.config.config(), positive_bijector="exp")
    return gpflow.config.as_context(config)
