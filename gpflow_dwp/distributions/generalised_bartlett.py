"""The generalised Bartlett factor: a random lower trapezoid with independent entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions.gamma import sample_log_gamma
from gpflow_dwp.random import normal, split_seed

__all__ = [
    "BARTLETT_EVENT_NDIMS",
    "GeneralisedBartlett",
    "fill_trapezoid",
    "properties",
    "where_defined",
]

BARTLETT_EVENT_NDIMS = {"concentration": 1, "rate": 1, "loc": 2, "scale": 2}
"""The number of dimensions that are not of the batch, of each parameter of the factor."""


class GeneralisedBartlett(checks.CheckedParameters, tfp.distributions.Distribution):
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
    :param validate_args: Whether to assert, at run time, the support of values, and what is not
        known of the parameters at construction.
    :param allow_nan_stats: Whether the mode is NaN where an α_j is below ½. Otherwise that is an
        error when it is asked for.
    :param name: Name of the operations.
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
        allow_nan_stats: bool = True,
        name: str = "GeneralisedBartlett",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._concentration, self._rate, self._loc, self._scale = checks.convert_parameters(
                concentration=concentration, rate=rate, loc=loc, scale=scale
            )
            self._num_rows, self._rank = self._checked_shape()
            checks.check_requirements(self._requirements())
            super().__init__(
                dtype=self._loc.dtype,
                reparameterization_type=tfp.distributions.FULLY_REPARAMETERIZED,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                parameters=parameters,
                name=name,
            )

    @property
    def concentration(self) -> Any:
        """The concentrations α, [..., R]."""
        return self._concentration

    @property
    def rate(self) -> Any:
        """The rates β, [..., R]."""
        return self._rate

    @property
    def loc(self) -> Any:
        """The means μ, [..., M, R]."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The standard deviations σ, [..., M, R]."""
        return self._scale

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(**BARTLETT_EVENT_NDIMS)

    def _requirements(self) -> list[checks.Requirement]:
        make, positive = checks.Requirement, "positive and finite entries"
        below = "entries below its diagonal"
        return [
            make("concentration", self._concentration, checks.positive, positive),
            make("rate", self._rate, checks.positive, positive),
            make("loc", self._loc, checks.finite_below_diagonal, f"finite {below}"),
            make(
                "scale", self._scale, checks.positive_below_diagonal, f"positive and finite {below}"
            ),
        ]

    def _checked_shape(self) -> tuple[int, int]:
        """M and R, where all parameters fit them and each other."""
        size, rank = checks.matrix_shape("loc", self._loc)
        if size < rank:
            raise ValueError(
                "loc must have shape [..., M, R] with M >= R (R = min(df, M)), got shape "
                f"{self._loc.shape}."
            )
        why = "R, the number of columns of loc"
        checks.check_event("concentration", self._concentration, [rank], why)
        checks.check_event("rate", self._rate, [rank], why)
        checks.check_event("scale", self._scale, [size, rank], "as loc")
        event_ndims = BARTLETT_EVENT_NDIMS
        checks.check_batch_shapes(event_ndims, {key: getattr(self, key) for key in event_ndims})
        return size, rank

    def _sample_control_dependencies(self, value: tf.Tensor) -> list[Any]:
        if not self.validate_args:
            return []
        above = value - tf.linalg.band_part(value, -1, 0)
        return [
            tf.debugging.assert_positive(
                tf.linalg.diag_part(value), message="The value must have a positive diagonal."
            ),
            tf.debugging.assert_equal(
                above, tf.zeros_like(above), message="The value must be zero above its diagonal."
            ),
        ]

    def _event_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self._num_rows, self._rank])

    def _event_shape_tensor(self) -> tf.Tensor:
        return tf.constant([self._num_rows, self._rank], dtype=tf.int32)

    def _sample_n(self, n: tf.Tensor, seed: Any = None) -> tf.Tensor:
        gamma_seed, normal_seed = split_seed(tfp.random.sanitize_seed(seed), 2)
        batch_shape = self.batch_shape_tensor()
        concentration = self._broadcast(
            self._concentration, tf.concat([[n], batch_shape], axis=0), [self._rank]
        )
        log_gamma = sample_log_gamma(concentration, gamma_seed) - tf.math.log(self._rate)
        shape = tf.concat([[n], batch_shape, self.event_shape_tensor()], axis=0)
        loc, scale = self._loc_and_scale()
        noise = normal(shape, normal_seed, self.dtype)
        return self._assemble(tf.exp(0.5 * log_gamma), loc + scale * noise)

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        checks.check_event("The value", value, self.event_shape.as_list(), "the event shape")
        concentration = tf.convert_to_tensor(self._concentration)
        rate = tf.convert_to_tensor(self._rate)
        diagonal = tf.linalg.diag_part(value)
        # log 2 + log T_jj + log Gamma(T_jj²; α_j, β_j)
        log_diagonal_density = tf.reduce_sum(
            math.log(2.0)
            + (2.0 * concentration - 1.0) * tf.math.log(diagonal)
            + concentration * tf.math.log(rate)
            - tf.math.lgamma(concentration)
            - rate * diagonal**2,
            axis=-1,
        )
        # log N(T_ij; μ_ij, σ_ij²); entries on and above the diagonal add zero.
        loc, scale = self._loc_and_scale()
        below = self._below_diagonal()
        residual = (tf.where(below, value, tf.zeros([], self.dtype)) - loc) / scale
        log_below_density = -tf.reduce_sum(
            0.5 * residual**2 + tf.math.log(scale), axis=[-2, -1]
        ) - 0.5 * math.log(2.0 * math.pi) * float(np.sum(below))
        return log_diagonal_density + log_below_density

    def mean_and_variance(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return what ``mean`` and ``variance`` do, [..., M, R] each, for less than both."""
        mean, variance = _mean_and_variance(self._concentration, self._rate)
        loc, scale = self._loc_and_scale()
        return self._at_batch_shape(mean, loc), self._at_batch_shape(variance, scale**2)

    def mean_log_diagonal(self) -> tf.Tensor:
        """Return E log T_jj = ½ (ψ(α_j) - log β_j), [..., R]."""
        return _mean_log(self._concentration, self._rate)

    def cumulants_of_diagonal(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the third and fourth cumulants of T_jj, [..., R] each."""
        moments = _mean_and_variance(self._concentration, self._rate)
        return _cumulants(self._concentration, self._rate, *moments)

    def mode_under(self, exponents: tf.Tensor, *, allow_nan: bool, message: str) -> tf.Tensor:
        """Return the maximum of p(T) Π_j T_jj^(e_j), [..., M, R].

        What depends on T_jj is T_jj^(2 α_j - 1 + e_j) exp(-β_j T_jj²). It is unbounded near zero,
        and has no maximum, where the exponent is negative; where it is zero, the density decreases
        from T_jj = 0, at the edge of the support.

        :param exponents: Exponents of the diagonal, e, [R]. Those of a Jacobian determinant make it
            the mode of what T is mapped to.
        :param allow_nan: Whether it is NaN where there is none. Otherwise that is an error.
        :param message: What the error says.
        """
        exponents = 2.0 * tf.convert_to_tensor(self._concentration) - 1.0 + exponents
        loc, _ = self._loc_and_scale()
        diagonal = tf.sqrt(tf.maximum(exponents, 0.0) / (2.0 * self._rate))
        return where_defined(
            self._at_batch_shape(diagonal, loc),
            tf.reduce_all(exponents >= 0.0, axis=-1)[..., None, None],
            allow_nan=allow_nan,
            message=message,
        )

    def _mean(self) -> tf.Tensor:
        return self.mean_and_variance()[0]

    def _variance(self) -> tf.Tensor:
        return self.mean_and_variance()[1]

    def _covariance(self) -> tf.Tensor:
        # The entries are independent.
        variance = self.variance()
        entries = [self._num_rows * self._rank]
        shape = tf.concat([tf.shape(variance)[:-2], entries], axis=0)
        return tf.linalg.diag(tf.reshape(variance, shape))

    def _mode(self) -> tf.Tensor:
        return self.mode_under(
            tf.zeros([self._rank], self.dtype),
            allow_nan=self.allow_nan_stats,
            message="The mode is defined where concentration >= 1/2 only.",
        )

    def _entropy(self) -> tf.Tensor:
        diagonal = tf.reduce_sum(_entropy_of_root(self._concentration, self._rate), axis=-1)
        _, scale = self._loc_and_scale()
        count = float(np.sum(self._below_diagonal()))
        below = tf.reduce_sum(tf.math.log(scale), axis=[-2, -1])
        entropy = diagonal + below + 0.5 * count * math.log(2.0 * math.pi * math.e)
        return tf.broadcast_to(entropy, self.batch_shape_tensor())

    def _default_event_space_bijector(self) -> Any:
        return fill_trapezoid(self._num_rows, self._rank)

    def _loc_and_scale(self) -> tuple[tf.Tensor, tf.Tensor]:
        # Selecting before anything is computed keeps ignored entries out of values and gradients.
        below = self._below_diagonal()
        loc = tf.where(below, self._loc, tf.zeros([], self.dtype))
        return loc, tf.where(below, self._scale, tf.ones([], self.dtype))

    def _assemble(self, diagonal: tf.Tensor, below: tf.Tensor) -> tf.Tensor:
        below = tf.where(self._below_diagonal(), below, tf.zeros([], self.dtype))
        return tf.linalg.set_diag(below, diagonal)

    def _at_batch_shape(self, diagonal: tf.Tensor, below: tf.Tensor) -> tf.Tensor:
        batch_shape = self.batch_shape_tensor()
        return self._assemble(
            self._broadcast(diagonal, batch_shape, [self._rank]),
            self._broadcast(below, batch_shape, [self._num_rows, self._rank]),
        )

    def _broadcast(
        self, tensor: tf.Tensor, batch_shape: tf.Tensor, event_shape: list[int]
    ) -> tf.Tensor:
        return tf.broadcast_to(tensor, tf.concat([batch_shape, event_shape], axis=0))

    def _below_diagonal(self) -> Any:
        return np.tri(self._num_rows, self._rank, -1, dtype=bool)


# T > 0 with T² ~ Gamma(α, rate β): the law of the diagonal.


def _mean_and_variance(concentration: tf.Tensor, rate: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return E T = Γ(α + ½) / (Γ(α) √β) and E T² - (E T)² = α/β - (E T)²."""
    concentration = tf.convert_to_tensor(concentration)
    log_ratio = tf.cast(_log_gamma_half_step(concentration), concentration.dtype)
    mean = tf.exp(log_ratio - 0.5 * tf.math.log(rate))
    return mean, concentration / rate - mean**2


def _cumulants(
    concentration: tf.Tensor, rate: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the third and fourth cumulants, from the first two.

    With β = 1, m = E T and v = α - m², E T³ = (α + ½) m and E T⁴ = α (α + 1). In the central
    moments the powers of m cancel: the third is m (½ - 2 v), and the fourth less 3 v² is
    α (4 v - 1) + 2 v - 6 v². Both vanish as α grows, where v → ¼.
    """
    unit = variance * rate
    third = mean * (0.5 - 2.0 * unit) / rate
    return third, (concentration * (4.0 * unit - 1.0) + 2.0 * unit - 6.0 * unit**2) / rate**2


def _mean_log(concentration: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """Return E log T = ½ (ψ(α) - log β)."""
    return 0.5 * (tf.math.digamma(concentration) - tf.math.log(rate))


def _entropy_of_root(concentration: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """Return that of T² ~ Gamma(α, rate β), less E[log 2 T], for the change to T."""
    concentration = tf.convert_to_tensor(concentration)
    log_rate, digamma = tf.math.log(rate), tf.math.digamma(concentration)
    of_square = (
        concentration - log_rate + tf.math.lgamma(concentration) + (1.0 - concentration) * digamma
    )
    return of_square - math.log(2.0) - 0.5 * (digamma - log_rate)


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


def properties(**event_ndims: int) -> dict[str, Any]:
    """Describe parameters by how many of their dimensions are not of the batch."""
    return {
        name: tfp.util.ParameterProperties(event_ndims=ndims) for name, ndims in event_ndims.items()
    }


def fill_trapezoid(size: int, rank: int) -> Any:
    """Return a bijector onto the lower trapezoids with a positive diagonal.

    A vector of R (R + 1)/2 + (M - R) R real numbers becomes the leading triangle, the diagonal
    through softplus, and the rows below it.

    :param size: Number of rows of the matrix, M.
    :param rank: Rank of the Gram matrix, R.
    """
    bijectors = tfp.bijectors
    triangle = bijectors.FillScaleTriL(diag_bijector=bijectors.Softplus(), diag_shift=None)
    if size == rank:
        return triangle
    below = size - rank
    entries = [rank * (rank + 1) // 2, below * rank]
    return bijectors.Chain(
        [
            bijectors.Invert(bijectors.Split([rank, below], axis=-2)),
            bijectors.JointMap([triangle, bijectors.Reshape([below, rank], [below * rank])]),
            bijectors.Split(entries),
        ],
    )


def where_defined(
    value: tf.Tensor, defined: tf.Tensor, *, allow_nan: bool, message: str
) -> tf.Tensor:
    """Put NaN where a statistic is not defined, or make that an error.

    :param value: The statistic, or what it is made of.
    :param defined: Where it is defined; broadcasts with ``value``.
    :param allow_nan: Whether NaN is allowed.
    :param message: What the error says.
    """
    assertions = []
    if not allow_nan:
        assertions = [tf.debugging.assert_equal(tf.reduce_all(defined), True, message=message)]
    with tf.control_dependencies(assertions):
        return tf.where(defined, value, tf.constant(np.nan, value.dtype))
