"""Kernels of inputs, which have no form in a Gram matrix: additive ones, and a separable one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.kernels import AnisotropicStationary, IsotropicStationary, Linear, Sum
from gpflow.utilities import positive

from gpflow_dwp.kernels.values import Part, Parts, as_kernel

__all__ = ["SeparableMatern52", "additive_kernel", "additive_values"]

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


class SeparableMatern52(AnisotropicStationary):
    r"""A product of Matérn 5/2 kernels, one of each input.

    .. math:: \sigma^2 \prod_d (1 + r_d + r_d^2 / 3) \exp(-r_d), \qquad
              r_d = \sqrt 5 \, |x_d - x'_d| / \ell_d

    Functions that are sums or products of functions of single inputs are smoother under it than
    under one of distances. It is for inputs, not for the Gram matrices of hidden layers (Gu, Wang
    and Berger, "Robust Gaussian stochastic process emulation", 2018, equation 3).

    :param variance: σ².
    :param lengthscales: ℓ, a number or one for each input, [D].
    :param kwargs: ``name`` and ``active_dims``.
    """

    def __init__(
        self, variance: TensorType = 1.0, lengthscales: TensorType = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(variance, lengthscales, **kwargs)
        # GPflow's class leaves them without a sign, as those of some anisotropic kernels are.
        self.lengthscales = Parameter(lengthscales, transform=positive())

    def K_d(self, d: TensorType) -> tf.Tensor:
        """Evaluate the kernel.

        :param d: Differences by lengthscales, [..., D].
        :return: [...].
        """
        r = math.sqrt(5.0) * tf.abs(d)
        logs = tf.math.log1p(r + tf.square(r) / 3.0) - r
        return self.variance * tf.exp(tf.reduce_sum(logs, axis=-1))
