"""A precision with a Gamma prior and posterior, and the Gaussian likelihood that has it."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import gpflow
import tensorflow as tf
from gpflow import Parameter, default_float
from gpflow.likelihoods import ScalarLikelihood
from gpflow.utilities import positive

from gpflow_dwp.base import Seed
from gpflow_dwp.likelihoods.normal_mixture import NormalMixture, gamma_nodes, student_log_density
from gpflow_dwp.likelihoods.observed import Observed, draw_gamma
from gpflow_dwp.random import normal, split_seed
from gpflow_dwp.validation import check_not_negative, check_positive

__all__ = ["GammaGaussian", "GammaPrecision", "HasDivergence", "gamma_kl"]


@runtime_checkable
class HasDivergence(Protocol):
    """A likelihood that has variables of its own, which the bound counts."""

    def kl_divergence(self) -> tf.Tensor:
        """Divergence of their posterior from their prior, in nats, []."""


class GammaPrecision(gpflow.Module):
    """τ with the prior Gam(a₀, b₀) and the posterior Gam(a, b), of concentration and rate.

    Of n numbers z_i ~ N(0, 1/τ) the best posterior is a = a₀ + n/2, whatever else is learned, and
    b = b₀ + ½ E Σ z_i². So a is fixed; b starts where E[τ] is that of the prior, and :func:`fit`
    moves it to this best value, where any other optimiser, and all without n, follow gradients.

    :param prior_concentration: Shape of the prior, a₀, positive.
    :param prior_rate: b₀, positive, in the inverse units of τ.
    :param count: How many numbers have this precision, n.
    :raises ValueError: If one of the first two is not positive, or the last one negative.
    """

    def __init__(self, prior_concentration: float, prior_rate: float, count: float = 0.0) -> None:
        super().__init__(name="GammaPrecision")
        check_positive(prior_concentration=prior_concentration, prior_rate=prior_rate)
        check_not_negative(count=count)
        self.prior_concentration = float(prior_concentration)
        self.prior_rate = float(prior_rate)
        self.is_counted = count > 0.0
        dtype, transform = default_float(), positive(base="exp", lower=0.0)
        best = prior_concentration + 0.5 * count
        self.concentration = Parameter(best, dtype=dtype, transform=transform, trainable=False)
        start = prior_rate * best / prior_concentration
        self.rate = Parameter(start, dtype=dtype, transform=transform)

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
        return tf.where(excess > 0.0, self.rate / excess, math.inf)

    def kl_divergence(self) -> tf.Tensor:
        """KL(q(τ) || p(τ)) in nats, []."""
        posterior = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        return gamma_kl(*posterior, self.prior_concentration, self.prior_rate)


def gamma_kl(a: tf.Tensor, b: tf.Tensor, a0: float, b0: float) -> tf.Tensor:
    """KL(Gam(a, b) || Gam(a₀, b₀)) in nats, of concentrations and rates, []."""
    return (
        (a - a0) * tf.math.digamma(a)
        - tf.math.lgamma(a)
        + math.lgamma(a0)
        + a0 * (tf.math.log(b) - math.log(b0))
        + a * (b0 - b) / b
    )


class GammaGaussian(NormalMixture, ScalarLikelihood):
    """y ~ N(f, 1/τ) with τ ~ Gam(a₀, b₀), and a posterior Gam(a, b): see :class:`GammaPrecision`.

    Expectations over τ are exact in :meth:`variational_expectations`. Given f, the columns of a row
    are jointly Student's t with 2a degrees of freedom; where f is Gaussian, predictive densities
    are sums over nodes of τ.

    :param prior_concentration: a₀, positive; above 1 for a prior that predicts with a variance.
    :param prior_rate: b₀, positive, in squared units of y.
    :param num_observations: Numbers that are observed, n: rows times columns, less missing ones,
        rows counted by their weights. With 0, a stays at a₀.
    """

    columns_share_nodes = True

    def __init__(
        self,
        prior_concentration: float = 6.0,
        prior_rate: float = 6.0,
        num_observations: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.prior_concentration, self.prior_rate = prior_concentration, prior_rate
        self.num_observations = num_observations
        self.precision = GammaPrecision(prior_concentration, prior_rate, num_observations)

    def kl_divergence(self) -> tf.Tensor:
        """KL of the precision's posterior from its prior, in nats, []."""
        return self.precision.kl_divergence()

    def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return self._student_t(tf.square(Y - F), 1)

    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return self._student_t(tf.reduce_sum(tf.square(Y - F), axis=-1), Y.shape[-1])

    def _predict_mean_and_var(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.identity(Fmu), Fvar + self.precision.mean_inverse

    def log_component_weights(self) -> tf.Tensor:
        return gamma_nodes(2.0 * self.precision.concentration)[1]

    def warped_components(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        nodes = tf.cast(gamma_nodes(2.0 * self.precision.concentration)[0], Fvar.dtype)
        noise = 1.0 / (tf.cast(self.precision.mean, Fvar.dtype) * nodes)
        variances = Fvar + tf.reshape(noise, [-1] + [1] * len(Fvar.shape))
        return tf.broadcast_to(Fmu, tf.shape(variances)), variances

    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        squares = self.precision.mean * (tf.square(Y - Fmu) + Fvar)
        constant = self.precision.mean_log - math.log(2.0 * math.pi)
        return 0.5 * tf.reduce_sum(constant - squares, axis=-1)

    def _student_t(self, squares: tf.Tensor, num_columns: int) -> tf.Tensor:
        """The log density of columns of which the sum of squared residuals is given."""
        df = 2.0 * tf.convert_to_tensor(self.precision.concentration)
        return student_log_density(df, 1.0 / self.precision.mean, squares, num_columns)


class _Observed(Observed, of=[GammaGaussian]):
    by_entry = False  # the posterior has no density at one precision

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        normal_seed, gamma_seed = split_seed(seed, 2)
        posterior = self.likelihood.precision
        shape = tf.fill([tf.shape(F)[0], 1], tf.cast(posterior.concentration, F.dtype))
        precision = draw_gamma(shape, gamma_seed) / tf.cast(posterior.rate, F.dtype)
        return F + normal(tf.shape(F), normal_seed, F.dtype) / tf.sqrt(precision)
