"""A Gaussian likelihood whose precision has a Gamma posterior."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood

from gpflow_dwp.likelihoods.gamma_precision import GammaPrecision

__all__ = ["GammaGaussian"]


class GammaGaussian(ScalarLikelihood):
    """y ~ N(f, 1/τ) with τ ~ Gam(a₀, b₀), and a posterior Gam(a, b) that is learned.

    Expectations over τ are exact in :meth:`variational_expectations`. Predictions take the mean of
    1/τ as a Gaussian's variance; that differs from the exact Student t by O(1/a), and a grows with
    the data.

    :param prior_concentration: a₀, positive; above 1 for a prior that predicts with a variance.
    :param prior_rate: b₀, positive, in squared units of y.
    """

    def __init__(
        self, prior_concentration: float = 6.0, prior_rate: float = 6.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.prior_concentration, self.prior_rate = prior_concentration, prior_rate
        self.precision = GammaPrecision(prior_concentration, prior_rate)

    def kl_divergence(self) -> tf.Tensor:
        """KL of the precision's posterior from its prior, in nats, []."""
        return self.precision.kl_divergence()

    def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return _log_normal(Y, F, self.precision.mean_inverse)

    def _conditional_mean(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        return tf.identity(F)

    def _conditional_variance(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        return tf.fill(tf.shape(F), self.precision.mean_inverse)

    def _predict_mean_and_var(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.identity(Fmu), Fvar + self.precision.mean_inverse

    def _predict_log_density(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        densities = _log_normal(Y, Fmu, Fvar + self.precision.mean_inverse)
        return tf.reduce_sum(densities, axis=-1)

    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        squares = self.precision.mean * (tf.square(Y - Fmu) + Fvar)
        constant = self.precision.mean_log - math.log(2.0 * math.pi)
        return 0.5 * tf.reduce_sum(constant - squares, axis=-1)


def _log_normal(Y: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    squares = tf.square(Y - mean) / variance
    return -0.5 * (math.log(2.0 * math.pi) + tf.math.log(variance) + squares)
