"""The kernel that most emulators of simulators have: a product over inputs."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.kernels import AnisotropicStationary
from gpflow.utilities import positive

__all__ = ["SeparableMatern52"]


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
