"""Kernels of inputs, which have no form in a Gram matrix: of sums, products and categories."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.kernels import AnisotropicStationary, IsotropicStationary, Linear, Matern52, Sum
from gpflow.utilities import positive

from gpflow_dwp.base import Array
from gpflow_dwp.kernels.values import Part, Parts, as_kernel

__all__ = [
    "LevelsMatern52",
    "SeparableMatern52",
    "additive_kernel",
    "additive_values",
    "places_of_levels",
]

# Shares of the variance at the start: of all inputs jointly, of the line, of single inputs.
_SHARES = 0.3, 0.1, 0.6


def additive_kernel(
    base: type[IsotropicStationary], lengthscales: TensorType, columns: Iterable[int] | None = None
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
    base: type[IsotropicStationary], lengthscales: TensorType, columns: Iterable[int] | None = None
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


class LevelsMatern52(Matern52):
    r"""A Matérn 5/2 kernel of numbers, and of points in a plane that stand for a category's levels.

    .. math:: r^2 = \sum_d (x_d - x'_d)^2 / \ell_d^2 + \sum_c \| z_{c(x)} - z_{c(x')} \|^2

    Levels that are alike are near each other, in groups or along a line, which lengthscales of
    indicators cannot say: by these what makes one level unlike another makes it unlike all (Zhang,
    Tao, Chen and Apley, "A latent variable approach to Gaussian process modeling with qualitative
    and quantitative factors", 2020). The point of a level is 1/ℓ by its two lengthscales, times
    what its indicator is; where all points are together is arbitrary. It is for inputs, not for the
    Gram matrices of hidden layers.

    :param variance: σ².
    :param lengthscales: ℓ: one for each input, then a second one for each indicator, [D + L].
    :param categories: Of each input 0 if it is a number, else the number of the category that it is
        an indicator of, [D]; none if all are numbers.
    :param kwargs: ``name`` and ``active_dims``.
    """

    def __init__(
        self,
        variance: TensorType = 1.0,
        lengthscales: TensorType = 1.0,
        categories: npt.ArrayLike = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(variance, lengthscales, **kwargs)
        self.categories = np.asarray(categories, int)

    def scale(self, X: TensorType | None) -> tf.Tensor | None:
        """Numbers by their lengthscales, and points of levels, [..., Q], of inputs [..., D]."""
        return None if X is None else self.scale_by(X, self.lengthscales)

    def scale_by(self, X: TensorType, lengthscales: TensorType) -> tf.Tensor:
        """The same by other lengthscales, which broadcast with inputs."""
        if not len(self.categories):
            return X / lengthscales
        columns, shared = places_of_levels(self.categories)
        of_columns = tf.gather(X, columns, axis=-1) / lengthscales
        return tf.linalg.matmul(of_columns, tf.constant(shared, of_columns.dtype))


def places_of_levels(categories: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], Array]:
    """Which input each lengthscale is of, [K], and which coordinate it is added to, [K, Q]."""
    of_inputs = np.asarray(categories)
    (indicators,) = np.nonzero(of_inputs)
    columns = np.append(np.arange(len(of_inputs)), indicators)
    # A number has a coordinate by itself, a category the same two for all its levels.
    first = np.where(of_inputs > 0, -2 * of_inputs, np.arange(len(of_inputs)))
    keys = np.append(first, -2 * of_inputs[indicators] - 1)
    return columns, (keys[:, None] == np.unique(keys)).astype(float)
