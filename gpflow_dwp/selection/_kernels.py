"""Kernels that models start with."""

from __future__ import annotations

import math

import numpy as np
from gpflow.kernels import Kernel

from gpflow_dwp.models.named_kernels import make_kernels, positive_by_exp

__all__ = ["initial_kernel"]


def initial_kernel(
    name: str, num_inputs: int, variance: float = 1.0, *, ard: bool = True
) -> Kernel:
    """Return the kernel of a name in :data:`KERNELS` that a single layer starts with.

    :param ard: Whether each input has a lengthscale of its own, where the kernel has any.
    """
    with positive_by_exp():
        kernel = make_kernels(name, 2, num_inputs)[0 if ard else 1]
    if hasattr(kernel, "lengthscales"):
        # About the distance between two standardised rows.
        start = np.full(kernel.lengthscales.shape, math.sqrt(2.0 * num_inputs))
        kernel.lengthscales.assign(start)
    kernel.variance.assign(variance)
    return kernel
