"""A precision with a Gamma prior and posterior, and the Gaussian likelihood that has it."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import gpflow
import tensorflow as tf
from gpflow import Parameter, default_float
from gpflow.likelihoods import ScalarLikelihood
from gpflow.logdensities import gaussian
from gpflow.utilities import positive

from gpflow_dwp.validation import check_positive

__all__ = ["GammaGaussian", "GammaPrecision", "HasDivergence"]


@runtime_checkable
class HasDivergence(Protocol):
    """A likelihood that has variables of its own, which the bound counts."""

    def kl_divergence(self) -> tf.Tensor:
        """Divergence of their posterior from their prior, in nats, []."""


class GammaPrecision(gpflow.Module):
    """τ with the prior Gam(a₀, b₀) and the posterior Gam(a, b), of concentration and rate.

    :param prior_concentration: Shape of the prior, a₀, positive.
    :param prior_rate: b₀, positive, in the inverse units of τ.
    :raises ValueError: If one of them is not positive.
    """

    def __init__(self, prior_concentration: float, prior_rate: float) -> None:
        super().__init__(name="GammaPrecision")
        check_positive(prior_concentration=prior_concentration, prior_rate=prior_rate)
        self.prior_concentration = float(prior_concentration)
        self.prior_rate = float(prior_rate)
        dtype, transform = default_float(), positive(base="exp", lower=0.0)
        self.concentration = Parameter(prior_concentration, dtype=dtype, transform=transform)
        self.rate = Parameter(prior_rate, dtype=dtype, transform=transform)

    @property
    def mean(self) -> tf.Tensor:
        """E[τ] = a / b."""
        return tf.convert_to_tensor(self.concentration) / tf.convert_to_tensor(self.rate)

    @property
    def mean_log(self) -> tf.Tensor:
        """E[log τ] = ψ(a) - log b."""
        return tf.math.digamma(self.concentration) - tf.math.log(self.rate)

    @property
    def mean_inverse(self) -> tf.Tensor:
        """E[1 / τ] = b / (a - 1), infinite where a ≤ 1."""
        excess = tf.convert_to_tensor(self.concentration) - 1.0
        infinity = tf.constant(float("inf"), excess.dtype)
        return tf.where(excess > 0.0, self.rate / excess, infinity)

    def kl_divergence(self) -> tf.Tensor:
        """KL(q(τ) || p(τ)) in nats, []."""
        a, b = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        a0 = tf.constant(self.prior_concentration, a.dtype)
        b0 = tf.constant(self.prior_rate, a.dtype)
        return (
            (a - a0) * tf.math.digamma(a)
            - tf.math.lgamma(a)
            + tf.math.lgamma(a0)
            + a0 * (tf.math.log(b) - tf.math.log(b0))
            + a * (b0 - b) / b
        )


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
        return gaussian(Y, F, self.precision.mean_inverse)

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
        densities = gaussian(Y, Fmu, Fvar + self.precision.mean_inverse)
        return tf.reduce_sum(densities, axis=-1)

    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        squares = self.precision.mean * (tf.square(Y - Fmu) + Fvar)
        constant = self.precision.mean_log - math.log(2.0 * math.pi)
        return 0.5 * tf.reduce_sum(constant - squares, axis=-1)
