"""Sums of functions of single inputs, and what is left of all."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from gpflow.base import TensorType
from gpflow.kernels import IsotropicStationary, Linear, Sum

from gpflow_dwp.kernels.values import Part, Parts, as_kernel

__all__ = ["additive_kernel", "additive_values"]

# Shares of the variance at the start: of all inputs jointly, of the line, of single inputs.
_SHARES = 0.3, 0.1, 0.6


def additive_kernel(
    base: type[IsotropicStationary],
    lengthscales: TensorType,
    columns: Iterable[int] | None = None,
) -> Sum:
    r"""Make the kernel of a line, functions of single inputs, and one of all of them.

    .. math:: k(x, x') + \sigma^2 x^\top x' + \sum_j k_j(x_j, x'_j)

    Much of many tables, and of some simulators, is a sum of functions of single inputs, which few
    rows tell apart (Duvenaud, Nickisch and Rasmussen, "Additive Gaussian processes", 2011). It is
    for inputs, not for the Gram matrices of hidden layers.

    :param base: Class of k, which has a lengthscale for each input, and of all kⱼ.
    :param lengthscales: Where those of k start, [D]; kⱼ starts with that of its input by √D.
    :param columns: Which j there are; None for all. An indicator needs none, as it is on a line.
    :return: GPflow's sum of k, the linear kernel and the kⱼ, whose ``active_dims`` are [j].
    """
    return as_kernel(additive_values(base, lengthscales, columns))


def additive_values(
    base: type[IsotropicStationary],
    lengthscales: TensorType,
    columns: Iterable[int] | None = None,
) -> Parts:
    """The values of that kernel: joint, linear, and of each single input."""
    scales = np.asarray(lengthscales, dtype=float)
    chosen = list(range(len(scales)) if columns is None else columns)
    joint, linear, single = _SHARES
    root = math.sqrt(len(scales))
    singles = [Part(base, single / len(chosen), scales[j] / root, [j]) for j in chosen]
    line = Part(Linear, linear / len(scales), np.empty(0))
    return Part(base, joint, scales), line, *singles
