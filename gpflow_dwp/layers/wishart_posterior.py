"""The approximate posterior over one layer's Gram matrix: GW, A-GW and AB-GW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter
from gpflow.utilities import positive

from gpflow_dwp.base import sizes
from gpflow_dwp.distributions import GeneralisedBartlett
from gpflow_dwp.distributions.kullback_leibler import expected_squared_norm, log_volume_over_minor
from gpflow_dwp.linalg.factorisation import Gradient, weighted_gram
from gpflow_dwp.validation import check_choice

__all__ = ["Mixing", "PosteriorFamily", "ScaleMixture", "WishartPosterior"]

PosteriorFamily = Literal["GW", "A", "AB"]
"""Which parts of the Bartlett factor the posterior mixes: none, rows, or rows and columns."""


class Mixing(NamedTuple):
    """What mixes the rows and columns of a Bartlett factor.

    :param rows: What multiplies T from the left, A', [M, M].
    :param log_det_rows: ``log|det A'|``, [].
    :param columns: What multiplies T from the right, B, [R, R].
    """

    rows: tf.Tensor
    log_det_rows: tf.Tensor
    columns: tf.Tensor

    def mix(self, factor: tf.Tensor) -> tf.Tensor:
        """Return A' T B for T of shape [S, M, R]."""
        # All draws in one product.
        columns = tf.transpose(tf.matmul(factor, self.columns), [1, 0, 2])
        M, S, R = sizes(columns)
        mixed = tf.matmul(self.rows, tf.reshape(columns, [M, S * R]))
        return tf.transpose(tf.reshape(mixed, [M, S, R]), [1, 0, 2])


class WishartPosterior(gpflow.Module):
    r"""Distribution of A' T B: a generalised Bartlett factor T with its rows and columns mixed.

    G = F Fᵀ with F = L A' T B, where the layer supplies the lower-triangular L. The family "GW"
    (Ober and Aitchison, 2021) has A' = B = I; "A" and "AB" (Ober, Anson, Milsom and Aitchison,
    2023) add an invertible A' and a lower-triangular B. A' is a unit lower times an upper triangle
    with a positive diagonal, both packed in one matrix, so that log|det A'| is a sum of M terms.

    The density's own α, β, μ, σ are constants for the gradient of a log ratio, which leaves out a
    term whose expectation is zero ("sticking the landing": Roeder, Wu and Duvenaud, 2017).

    :param df: Degrees of freedom, ν.
    :param num_inducing: Number of inducing points, M.
    :param family: "GW", "A" or "AB".
    :param rng: Draws the starting values of the Bartlett factor's means, N(0, 1/ν).
    :raises ValueError: If ``family`` is unknown.
    """

    def __init__(
        self, df: int, num_inducing: int, family: PosteriorFamily, rng: np.random.Generator
    ) -> None:
        super().__init__(name="WishartPosterior")
        check_choice(get_args(PosteriorFamily), posterior=family)
        self.df = df
        self.num_inducing = num_inducing
        self.family = family
        self.rank = min(df, num_inducing)
        shape = (num_inducing, self.rank)
        concentration = (df - np.arange(self.rank)) / 2
        self.concentration = Parameter(concentration, transform=positive(base="exp"))
        self.rate = Parameter(np.full(self.rank, 0.5), transform=positive(base="exp"))
        self.loc = Parameter(rng.standard_normal(shape) / np.sqrt(df))
        self.scale = Parameter(np.full(shape, np.exp(-3.0)), transform=positive(base="exp"))
        self.packed_row_mixing = self.column_mixing_tril = None
        if family != "GW":
            self.packed_row_mixing = Parameter(np.zeros((num_inducing, num_inducing)))
        if family == "AB":
            tril = tfp.bijectors.FillScaleTriL(diag_bijector=tfp.bijectors.Exp(), diag_shift=None)
            self.column_mixing_tril = Parameter(np.eye(self.rank), transform=tril)

    def bartlett(self, dtype: tf.DType) -> GeneralisedBartlett:
        """Return the distribution of T, of that dtype, event shape [M, R]."""
        return GeneralisedBartlett(*self._parameters(dtype))

    def _parameters(self, dtype: tf.DType) -> list[tf.Tensor]:
        """α, β, μ and σ."""
        parameters = (self.concentration, self.rate, self.loc, self.scale)
        return [tf.cast(parameter, dtype) for parameter in parameters]

    def mixing(self, dtype: tf.DType) -> Mixing:
        """Return A' and B, of that dtype."""
        if self.packed_row_mixing is None:
            rows, log_det_rows = tf.eye(self.num_inducing, dtype=dtype), tf.zeros([], dtype)
        else:
            packed = tf.cast(self.packed_row_mixing, dtype)
            rows = tf.matmul(*_unit_lower_and_upper(packed))
            log_det_rows = tf.reduce_sum(tf.linalg.diag_part(packed))
        if self.column_mixing_tril is None:
            return Mixing(rows, log_det_rows, tf.eye(self.rank, dtype=dtype))
        return Mixing(rows, log_det_rows, tf.cast(self.column_mixing_tril, dtype))

    def sampled_log_ratio(
        self, factor: tf.Tensor, mixing: Mixing, precision: tf.Tensor | None
    ) -> tf.Tensor:
        """Return -½‖C A' T B‖² - log Q', the part of log P - log Q that depends on T, [S].

        :param factor: Bartlett factor, T, [S, M, R].
        :param mixing: The matrices A' and B that multiply T.
        :param precision: CᵀC, [S, M, M], or None for the identity.
        """
        log_volume = self._log_volume(tf.math.log(tf.linalg.diag_part(factor)), mixing)
        mixed = mixing.mix(factor)
        weighted = mixed if precision is None else tf.matmul(precision, mixed)
        squared_norm = tf.reduce_sum(mixed * weighted, axis=[-2, -1])
        log_prob = _with_constants(
            lambda parameters, factor: GeneralisedBartlett(*parameters).log_prob(factor),
            self._parameters(factor.dtype),
            factor,
        )
        return -0.5 * squared_norm - log_prob + log_volume

    def expected_log_ratio(
        self, factor: tf.Tensor, mixing: Mixing, precision: tf.Tensor | None
    ) -> tf.Tensor:
        """Return the expectation over T of :meth:`sampled_log_ratio`, in closed form, [S] or [].

        Parameters as there, but T serves the gradient of α, β, μ, σ only: its noise cancels against
        that of the likelihood as the posterior gets better; that of the closed form does not.
        """
        bartlett = self.bartlett(factor.dtype)
        log_diagonal = tf.stop_gradient(bartlett.mean_log_diagonal())
        squared_norm = _with_constants(
            lambda parameters, *parts: expected_squared_norm(
                GeneralisedBartlett(*parameters), *parts
            ),
            self._parameters(factor.dtype),
            *(mixing.rows, mixing.columns, *([] if precision is None else [precision])),
        )
        log_ratio = -0.5 * squared_norm + tf.stop_gradient(bartlett.entropy())
        log_ratio += self._log_volume(log_diagonal, mixing)
        # The gradient of the sampled one by T: of -½ tr(Xᵀ Q X) with X = A' T B and Q = CᵀC,
        # of -log Q', and of the volume's Σ_j (ν - j) log T_jj.
        mixed = mixing.mix(factor)
        weighted = mixed if precision is None else tf.matmul(precision, mixed)
        back = Mixing(tf.transpose(mixing.rows), mixing.log_det_rows, tf.transpose(mixing.columns))
        powers = tf.constant(self.df - 1.0 - np.arange(self.rank), factor.dtype)
        slope = back.mix(weighted) + bartlett.slope_of_log_prob(factor, powers)
        return log_ratio + _zero_of_slope(factor, -slope)

    def _log_volume(self, log_diagonal: tf.Tensor, mixing: Mixing) -> tf.Tensor:
        """Logarithm of the volume change from T to G, but for what L alone makes of it."""
        log_column = tf.math.log(tf.linalg.diag_part(mixing.columns))
        return log_volume_over_minor(
            self.df, self.num_inducing, log_diagonal, mixing.log_det_rows, log_column
        )


class ScaleMixture(gpflow.Module):
    """Mixes a prior's scale S with a learned one: (1 - q) S + q s V Vᵀ / M.

    :param num_inducing: Number of inducing points, M.
    :param proportion: Where q starts.
    :param rng: Draws the starting value of V, standard normal.
    """

    def __init__(self, num_inducing: int, proportion: float, rng: np.random.Generator) -> None:
        super().__init__(name="ScaleMixture")
        self.num_inducing = num_inducing
        self.root = Parameter(rng.standard_normal((num_inducing, num_inducing)))
        self.root_scale = Parameter(1.0, transform=positive(base="exp"))
        self.proportion = Parameter(proportion, transform=tfp.bijectors.Sigmoid())

    def mix(self, covariance: tf.Tensor, df: int) -> tf.Tensor:
        """Return ν times the mixture, given K = ν S.

        :param covariance: Covariance at the inducing points, K, [S, M, M].
        :param df: Degrees of freedom, ν.
        """
        proportion, root_scale, root = (
            tf.cast(parameter, covariance.dtype)
            for parameter in (self.proportion, self.root_scale, self.root)
        )
        factor = proportion * root_scale * (df / self.num_inducing)
        learned = weighted_gram(root, tf.fill([self.num_inducing], factor))
        return (1.0 - proportion) * covariance + learned


def _unit_lower_and_upper(packed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The two triangles that are packed in one matrix, the second with its diagonal's logarithm."""
    ones = np.ones(packed.shape, packed.dtype.as_numpy_dtype)
    lower = packed * np.tril(ones, -1) + np.diag(ones[0])
    upper = packed * np.triu(ones, 1)
    return lower, tf.linalg.set_diag(upper, tf.exp(tf.linalg.diag_part(packed)))


def _with_constants(
    function: Callable[..., tf.Tensor], constants: Sequence[tf.Tensor], *arguments: tf.Tensor
) -> tf.Tensor:
    """``function(constants, *arguments)``, with gradients by the arguments alone.

    These gradients are functions of the constants all the same, as stopped ones would not be, and
    so second derivatives are right.
    """

    @tf.custom_gradient
    def differentiable(*tensors: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        held, given = tensors[: len(constants)], tensors[len(constants) :]
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(given)
            value = function(held, *given)
        return value, lambda bar: (*[None] * len(held), *tape.gradient(value, given, bar))

    return differentiable(*constants, *arguments)


@tf.custom_gradient
def _zero_of_slope(factor: tf.Tensor, slope: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    """Zeros, [S], whose gradient by T is a given one, [S, M, R]."""
    zeros = tf.zeros_like(factor[:, 0, 0])
    return zeros, lambda bar: (tf.reshape(bar, [-1, 1, 1]) * slope, None)
