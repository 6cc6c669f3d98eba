"""Gaussian noise whose scale is a function of the inputs, with a function of its own."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from scipy.special import log_softmax

from gpflow_dwp.base import Array
from gpflow_dwp.likelihoods.normal_mixture import NormalMixture
from gpflow_dwp.likelihoods.observed import ObservedGaussian
from gpflow_dwp.likelihoods.sinh_arcsinh import by_column
from gpflow_dwp.validation import check_integers

__all__ = ["HeteroskedasticGaussian"]

# Normal scores of h, 0.4 apart and further far out: outliers ask for those far above.
_STEPS = 0.4 * np.arange(-15.0, 67.0)
_NODES = 18.0 * np.sinh(_STEPS / 18.0)
_LOG_WEIGHTS = log_softmax(np.log(np.cosh(_STEPS / 18.0)) - 0.5 * np.square(_NODES))
_LOG_2PI = math.log(2.0 * math.pi)


class HeteroskedasticGaussian(NormalMixture):
    r"""y ~ N(f(x), σ²(x)): noise that is larger in some places, by a function that is learned.

    .. math:: y_p \mid f, h \sim \mathcal N(f_p, \sigma_p^2 e^{2 a_p h_p})

    Each of P outputs has two latent functions: the first P are f, the others h, for which builders
    make a kernel and precisions of their own. Given Gaussian f and h that are independent, as an
    output layer has them, expected log densities and moments are in closed form (Goldberg, Williams
    and Bishop, "Regression with input-dependent noise", 1997, have the model; Titsias and
    Lázaro-Gredilla, "Variational heteroscedastic Gaussian process regression", 2011, equation 4,
    the expectation). Predictive densities are sums over 82 values of h, off by less than 0.001 nats
    where a_p times the deviation of h_p is at most 1 and y within 80 deviations of the noise.

    >>> from gpflow_dwp.likelihoods import HeteroskedasticGaussian
    >>> HeteroskedasticGaussian(2, scale=0.1).latent_dim
    4

    :param num_outputs: Number of output columns, P.
    :param scale: Starting values of σ_p, a positive number or [P].
    :param amplitude: Starting values of a_p, a positive number or [P].
    :raises ValueError: If P is not a positive integer, or another number not positive.
    """

    def __init__(
        self,
        num_outputs: int = 1,
        scale: float | npt.NDArray[np.float64] = 0.1,
        amplitude: float | npt.NDArray[np.float64] = 0.5,
    ) -> None:
        check_integers(num_outputs=num_outputs)
        super().__init__(input_dim=None, latent_dim=2 * num_outputs, observation_dim=num_outputs)
        self.num_outputs = num_outputs
        self.scale = by_column("scale", scale, num_outputs, is_positive=True)
        self.amplitude = by_column("amplitude", amplitude, num_outputs, is_positive=True)

    def log_component_weights(self) -> tf.Tensor:
        return tf.constant(_LOG_WEIGHTS, tf.float64)

    def warped_components(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        mean, variance, log_scale, spread = self._moments(Fmu, Fvar)
        # The root of zero has no derivative.
        deviation = tf.sqrt(tf.maximum(spread, np.finfo(spread.dtype.as_numpy_dtype).tiny))
        nodes = tf.reshape(tf.constant(_NODES, mean.dtype), [-1] + [1] * len(mean.shape))
        noise = tf.exp(2.0 * (log_scale + deviation * nodes))
        return tf.broadcast_to(mean, tf.shape(noise)), variance + noise

    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self._variational_expectations(X, F, tf.zeros_like(F), Y)

    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        mean, variance, log_scale, spread = self._moments(Fmu, Fvar)
        squared = (tf.square(Y - mean) + variance) * tf.exp(2.0 * (spread - log_scale))
        return -tf.reduce_sum(0.5 * (_LOG_2PI + squared) + log_scale, axis=-1)

    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        mean, variance, log_scale, spread = self._moments(Fmu, Fvar)
        return mean, variance + tf.exp(2.0 * (log_scale + spread))

    def log_scales(self, Fmu: TensorType, Fvar: TensorType) -> MeanAndVariance:
        """Return mean and variance of log σ(x), which is normal, [..., P] each.

        :param Fmu: Mean of f and h, [..., 2P].
        :param Fvar: Variance of f and h, [..., 2P].
        """
        return self._moments(Fmu, Fvar)[2:]

    def _moments(self, Fmu: TensorType, Fvar: TensorType) -> tuple[tf.Tensor, ...]:
        """Mean and variance of f, and of the logarithm of the noise's scale, [..., P] each."""
        amplitude, scale = tf.cast(self.amplitude, Fmu.dtype), tf.cast(self.scale, Fmu.dtype)
        (mean, h), (variance, of_h) = (tf.split(moment, 2, axis=-1) for moment in (Fmu, Fvar))
        return mean, variance, tf.math.log(scale) + amplitude * h, tf.square(amplitude) * of_h


class _Observed(ObservedGaussian, of=[HeteroskedasticGaussian]):
    def functions(self, Y: Array) -> Array:
        return np.hstack([Y, np.zeros_like(Y)])
