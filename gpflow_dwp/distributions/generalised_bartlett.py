"""The generalised Bartlett factor: a random lower trapezoid with independent entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions._matrix_distribution import MatrixDistribution, properties
from gpflow_dwp.distributions.gamma import sample_log_gamma
from gpflow_dwp.random import normal, split_seed

__all__ = ["BARTLETT_EVENT_NDIMS", "GeneralisedBartlett"]

BARTLETT_EVENT_NDIMS = {"concentration": 1, "rate": 1, "loc": 2, "scale": 2}
"""The number of dimensions that are not of the batch, of each parameter of the factor."""


class GeneralisedBartlett(MatrixDistribution):
    r"""Random lower trapezoid T, [M, R] with M ≥ R, with independent entries:

    .. math:: T_{jj}^2 \sim \mathrm{Gamma}(\alpha_j, \text{rate } \beta_j), \; T_{jj} > 0; \quad
              T_{ij} \sim N(\mu_{ij}, \sigma_{ij}^2) \text{ for } i > j,

    which is (11) of "An Improved Variational Approximate Posterior for the Deep Wishart Process"
    (where the index of β is the row's own). The factor 2 T_jj from the square included, its density
    with respect to the entries on and below the diagonal is

    .. math:: \log p(T) = \sum_j [\log 2 + \log T_{jj} + \log\mathrm{Gamma}(T_{jj}^2;
              \alpha_j, \beta_j)] + \sum_{i>j} \log N(T_{ij}; \mu_{ij}, \sigma_{ij}^2).

    Where the diagonal of T is not positive the log-density is NaN or infinite; what is above it is
    ignored. Samples are reparameterised, with implicit gradients through the Gamma distribution.

    Batch dimensions broadcast. The dtype is that of the tensors among the parameters, or GPflow's
    default.

    :param concentration: Shapes of the squared diagonal's Gamma distributions, α, [..., R].
    :param rate: Rates of the squared diagonal's Gamma distributions, β, [..., R].
    :param loc: Means below the diagonal, μ, [..., M, R]. Entries on and above the diagonal are
        ignored.
    :param scale: Standard deviations below the diagonal, σ, [..., M, R]. Entries on and above the
        diagonal are ignored.
    :raises ValueError: If the shapes do not fit each other, or ``concentration``, ``rate`` or,
        below the diagonal, ``scale`` are known not to be positive, or any parameter not to be
        finite.
    """

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        name: str = "GeneralisedBartlett",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self.concentration, self.rate, self.loc, self.scale = checks.convert_parameters(
                concentration=concentration, rate=rate, loc=loc, scale=scale
            )
            self._num_rows, self._rank = self._checked_shape()
            self._check_values()
            shape = self._num_rows, self._rank
            super().__init__(shape, self.loc.dtype, parameters, name)

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, **BARTLETT_EVENT_NDIMS)

    def _checked_shape(self) -> tuple[int, int]:
        """M and R, where all parameters fit them and each other."""
        size, rank = checks.matrix_shape("loc", self.loc)
        if size < rank:
            raise ValueError(
                "loc must have shape [..., M, R] with M >= R (R = min(df, M)), got shape "
                f"{self.loc.shape}."
            )
        why = "R, the number of columns of loc"
        checks.check_event("concentration", self.concentration, [rank], why)
        checks.check_event("rate", self.rate, [rank], why)
        checks.check_event("scale", self.scale, [size, rank], "as loc")
        return size, rank

    def _check_values(self) -> None:
        for name in ("concentration", "rate"):
            value = getattr(self, name)
            checks.check_values(name, value, checks.positive, "positive and finite entries")
        below, where = self._below_diagonal(), "entries below its diagonal"
        checks.check_values(
            "loc", self.loc, lambda x: np.isfinite(x[..., below]), f"finite {where}"
        )
        checks.check_values(
            "scale", self.scale, lambda x: checks.positive(x[..., below]), f"positive {where}"
        )

    def _sample_n(self, n: tf.Tensor, seed: Any = None) -> tf.Tensor:
        gamma_seed, normal_seed = split_seed(tfp.random.sanitize_seed(seed), 2)
        batch = tf.concat([[n], self.batch_shape_tensor()], axis=0)
        alpha = tf.broadcast_to(self.concentration, tf.concat([batch, [self._rank]], axis=0))
        log_square = sample_log_gamma(alpha, gamma_seed) - tf.math.log(self.rate)
        mu, sigma = self._mu_and_sigma()
        shape = tf.concat([batch, self.event_shape_tensor()], axis=0)
        noise = normal(shape, normal_seed, self.dtype)
        return self._assemble(tf.exp(0.5 * log_square), mu + sigma * noise)

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        checks.check_event("The value", value, self.event_shape.as_list(), "the event shape")
        alpha, beta = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        diagonal = tf.linalg.diag_part(value)
        # log 2 + log T_jj + log Gamma(T_jj²; α_j, β_j)
        log_diagonal_density = tf.reduce_sum(
            math.log(2.0)
            + (2.0 * alpha - 1.0) * tf.math.log(diagonal)
            + alpha * tf.math.log(beta)
            - tf.math.lgamma(alpha)
            - beta * diagonal**2,
            axis=-1,
        )
        # log N(T_ij; μ_ij, σ_ij²); entries on and above the diagonal add zero.
        mu, sigma = self._mu_and_sigma()
        below = self._below_diagonal()
        residual = (tf.where(below, value, tf.zeros([], self.dtype)) - mu) / sigma
        log_below_density = -tf.reduce_sum(
            0.5 * residual**2 + tf.math.log(sigma), axis=[-2, -1]
        ) - 0.5 * math.log(2.0 * math.pi) * float(np.sum(below))
        return log_diagonal_density + log_below_density

    def slope_of_log_prob(self, value: tf.Tensor, powers: tf.Tensor) -> tf.Tensor:
        """Return the gradient of log p(T) - Σ_j c_j log T_jj by T, [..., M, R].

        :param value: The factor, T, [..., M, R].
        :param powers: Exponents of its diagonal, c, [R].
        """
        alpha, beta = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        diagonal = tf.linalg.diag_part(value)
        mu, sigma = self._mu_and_sigma()
        of_diagonal = (2.0 * alpha - 1.0 - powers) / diagonal - 2.0 * beta * diagonal
        return self._assemble(of_diagonal, (mu - value) / tf.square(sigma))

    def mean_and_variance(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return what ``mean`` and ``variance`` do, [..., M, R] each, for less than both.

        E T_jj = Γ(α_j + ½) / (Γ(α_j) √β_j), and E T_jj² = α_j / β_j.
        """
        alpha, beta = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        log_ratio = tf.cast(_log_gamma_half_step(alpha), alpha.dtype)
        mean = tf.exp(log_ratio - 0.5 * tf.math.log(beta))
        variance = alpha / beta - mean**2
        mu, sigma = self._mu_and_sigma()
        return self._at_batch_shape(mean, mu), self._at_batch_shape(variance, sigma**2)

    def mean_log_diagonal(self) -> tf.Tensor:
        """Return E log T_jj = ½ (ψ(α_j) - log β_j), [..., R]."""
        return 0.5 * (tf.math.digamma(self.concentration) - tf.math.log(self.rate))

    def _mean(self) -> tf.Tensor:
        return self.mean_and_variance()[0]

    def _variance(self) -> tf.Tensor:
        return self.mean_and_variance()[1]

    def _entropy(self) -> tf.Tensor:
        alpha, beta = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        digamma, log_beta = tf.math.digamma(alpha), tf.math.log(beta)
        # That of T_jj² ~ Gamma(α, rate β), less E[log 2 T_jj], for the change to T_jj.
        of_square = alpha - log_beta + tf.math.lgamma(alpha) + (1.0 - alpha) * digamma
        diagonal = of_square - math.log(2.0) - 0.5 * (digamma - log_beta)
        _, sigma = self._mu_and_sigma()
        count = float(np.sum(self._below_diagonal()))
        below = tf.reduce_sum(tf.math.log(sigma), axis=[-2, -1])
        entropy = tf.reduce_sum(diagonal, axis=-1) + below
        entropy += 0.5 * count * math.log(2.0 * math.pi * math.e)
        return tf.broadcast_to(entropy, self.batch_shape_tensor())

    def _mu_and_sigma(self) -> tuple[tf.Tensor, tf.Tensor]:
        # Selecting before anything is computed keeps ignored entries out of values and gradients.
        below = self._below_diagonal()
        mu = tf.where(below, self.loc, tf.zeros([], self.dtype))
        return mu, tf.where(below, self.scale, tf.ones([], self.dtype))

    def _assemble(self, diagonal: tf.Tensor, below: tf.Tensor) -> tf.Tensor:
        below = tf.where(self._below_diagonal(), below, tf.zeros([], self.dtype))
        return tf.linalg.set_diag(below, diagonal)

    def _at_batch_shape(self, diagonal: tf.Tensor, below: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        diagonal = tf.broadcast_to(diagonal, tf.concat([shape[:-2], [self._rank]], axis=0))
        return self._assemble(diagonal, tf.broadcast_to(below, shape))

    def _below_diagonal(self) -> Any:
        return np.tri(self._num_rows, self._rank, -1, dtype=bool)


def _log_gamma_half_step(alpha: tf.Tensor) -> tf.Tensor:
    """Return log Γ(α + ½) - log Γ(α) in float64, without the cancellation for large α.

    There by its asymptotic series (Tricomi and Erdélyi, 1951), of which four terms leave a relative
    error below 1e-17. TFP's ``log_gamma_difference`` is as accurate, with a graph several times as
    large.
    """
    alpha = tf.cast(alpha, tf.float64)
    large = tf.maximum(alpha, 100.0)
    square = 1.0 / large**2
    series = 0.5 * tf.math.log(large) - (1.0 + square * (square / 80.0 - 1.0 / 24.0)) / (
        8.0 * large
    )
    difference = tf.math.lgamma(alpha + 0.5) - tf.math.lgamma(alpha)
    return tf.where(alpha > 100.0, series, difference)
