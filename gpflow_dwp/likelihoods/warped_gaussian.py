"""Gaussian noise in an increasing function of the observations."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.quadrature.gauss_hermite import gh_points_and_weights
from gpflow.utilities.parameter_or_function import ConstantOrFunction

from gpflow_dwp.base import Array, Seed
from gpflow_dwp.likelihoods.observed import ObservedGaussian
from gpflow_dwp.random import normal
from gpflow_dwp.validation import check_instance, is_known

__all__ = [
    "QUADRATURE_POINTS",
    "ObservedWarp",
    "Warp",
    "WarpedGaussian",
    "unwarped_moments",
    "warp_of",
]

QUADRATURE_POINTS = 32


@runtime_checkable
class Warp(Protocol):
    """An increasing function g of each column of the observations, with what it needs to learn."""

    def forward(self, Y: tf.Tensor) -> tf.Tensor:
        """Return g(y), [..., P], of observations [..., P]."""

    def inverse(self, Z: tf.Tensor) -> tf.Tensor:
        """Return the y of which g(y) is ``Z``, [..., P]."""

    def log_derivative(self, Y: tf.Tensor) -> tf.Tensor:
        """Return log g'(y), [..., P]."""


class WarpedGaussian(Gaussian):
    r"""g(y) ~ N(f, σ²), for an increasing function g that is learned with the model.

    .. math:: \log p(y \mid f) = \log \mathcal N(g(y); f, \sigma^2) + \log g'(y)

    (Snelson, Rasmussen and Ghahramani, "Warped Gaussian processes", 2004, equation 6.) Bounds and
    densities are per unit of y, so that models with and without a warp can be compared by them.
    They are in closed form; mean and variance of y are by Gauss-Hermite quadrature with 32 points.

    >>> import tensorflow as tf
    >>> from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian
    >>> likelihood = WarpedGaussian(SinhArcsinh(tailweight=0.5), variance=0.01)
    >>> likelihood.warp.forward(tf.constant([[4.0]], tf.float64)).shape
    TensorShape([1, 1])

    :param warp: The increasing function g in which the noise is Gaussian.
    :param variance: σ² of g(y), or a function of the inputs; as for GPflow's Gaussian.
    :param variance_lower_bound: Its least value; None for GPflow's.
    :raises ValueError: If ``warp`` is no :class:`Warp`.
    """

    def __init__(
        self,
        warp: Warp,
        variance: ConstantOrFunction | None = None,
        *,
        variance_lower_bound: float | None = None,
    ) -> None:
        check_instance(Warp, warp=warp)
        super().__init__(variance, variance_lower_bound=variance_lower_bound)
        self.warp = warp

    def warped_mean_and_variance(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        """Return mean and variance of g(y), which is normal, [..., P] each.

        :param X: Inputs, [..., D].
        :param Fmu: Mean of f, [..., P].
        :param Fvar: Variance of f, [..., P].
        """
        return super()._predict_mean_and_var(X, Fmu, Fvar)

    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        density = super()._scalar_log_prob(X, F, self.warp.forward(Y))
        return density + self.warp.log_derivative(Y)

    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        expectation = super()._variational_expectations(X, Fmu, Fvar, self.warp.forward(Y))
        return expectation + tf.reduce_sum(self.warp.log_derivative(Y), axis=-1)

    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        density = super()._predict_log_density(X, Fmu, Fvar, self.warp.forward(Y))
        return density + tf.reduce_sum(self.warp.log_derivative(Y), axis=-1)

    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        return unwarped_moments(self.warp, *self.warped_mean_and_variance(X, Fmu, Fvar))

    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self._predict_mean_and_var(X, F, tf.zeros_like(F))[0]

    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self._predict_mean_and_var(X, F, tf.zeros_like(F))[1]


class ObservedWarp(ObservedGaussian, of=[WarpedGaussian]):
    """Noise around a function of the observations."""

    def functions(self, Y: Array) -> Array:
        return self.likelihood.warp.forward(tf.constant(Y)).numpy()

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        scale = tf.sqrt(self.likelihood.warped_mean_and_variance(X, F, tf.zeros_like(F))[1])
        return self.likelihood.warp.inverse(F + scale * normal(tf.shape(F), seed, F.dtype))


@check_shapes(
    "mean: [batch...]", "variance: [batch...]", "return[0]: [batch...]", "return[1]: [batch...]"
)
def unwarped_moments(warp: Warp, mean: tf.Tensor, variance: tf.Tensor) -> MeanAndVariance:
    """Return mean and variance of y where g(y) is normal, by Gauss-Hermite quadrature.

    :param warp: The increasing function g in which the noise is Gaussian.
    :param mean: Mean of g(y), [..., P].
    :param variance: Variance of g(y), [..., P].
    """
    points, weights = gh_points_and_weights(QUADRATURE_POINTS)
    nodes, weights = tf.cast(points[:, None], mean.dtype), tf.cast(weights, mean.dtype)
    deviation = tf.sqrt(variance)
    Y = warp.inverse(mean[..., None, :] + deviation[..., None, :] * nodes)
    first = tf.einsum("k,...kp->...p", weights, Y)
    centred = Y - first[..., None, :]
    return first, tf.einsum("k,...kp->...p", weights, tf.square(centred))


def warp_of(likelihood: Likelihood) -> Warp | None:
    """Return the function of the observations that a likelihood's noise is Gaussian in.

    It brings observations to the scale of the likelihood's functions. None of one that is no
    :class:`WarpedGaussian`.
    """
    return likelihood.warp if is_known(likelihood, WarpedGaussian) else None
