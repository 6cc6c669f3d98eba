"""The approximate posterior over one layer's Gram matrix: GW, A-GW and AB-GW."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float
from gpflow.utilities import positive

from gpflow_dwp.distributions import GeneralisedBartlett
from gpflow_dwp.validation import check_choice

__all__ = ["Mixing", "PosteriorFamily", "WishartPosterior"]

PosteriorFamily = Literal["GW", "A", "AB"]
"""Which parts of the Bartlett factor the posterior mixes: none, rows, or rows and columns."""


class Mixing(NamedTuple):
    """What mixes the rows and columns of a Bartlett factor.

    :param rows: A', [M, M].
    :param log_det_rows: ``log|det A'|``, [].
    :param columns: B, [R, R].
    """

    rows: tf.Tensor
    log_det_rows: tf.Tensor
    columns: tf.Tensor

    def mix(self, factor: tf.Tensor) -> tf.Tensor:
        """Return A' T B for T of shape [S, M, R]."""
        # All draws in one product.
        columns = tf.transpose(tf.matmul(factor, self.columns), [1, 0, 2])
        shape = tf.shape(columns)
        mixed = tf.matmul(self.rows, tf.reshape(columns, [shape[0], shape[1] * shape[2]]))
        return tf.transpose(tf.reshape(mixed, shape), [1, 0, 2])


class WishartPosterior(gpflow.Module):
    r"""Distribution of A' T B: a generalised Bartlett factor T with its rows and columns mixed.

    G = F Fᵀ with F = L A' T B, where the layer supplies the lower-triangular L. The family "GW"
    (Ober and Aitchison, 2021) has A' = B = I; "A" and "AB" (Ober, Anson, Milsom and Aitchison,
    2023) add an invertible A' and a lower-triangular B. A' is a unit lower times an upper triangle
    with a positive diagonal, both packed in one matrix, so that log|det A'| is a sum of M terms.

    :param df: ν, degrees of freedom.
    :param num_inducing: M.
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
        dtype = default_float()
        self.concentration = Parameter(
            (df - np.arange(self.rank)) / 2, dtype=dtype, transform=positive(base="exp")
        )
        self.rate = Parameter(np.full(self.rank, 0.5), dtype=dtype, transform=positive(base="exp"))
        self.loc = Parameter(rng.standard_normal(shape) / np.sqrt(df), dtype=dtype)
        self.scale = Parameter(
            np.full(shape, np.exp(-3.0)), dtype=dtype, transform=positive(base="exp")
        )
        self.packed_row_mixing = (
            None
            if family == "GW"
            else Parameter(np.zeros((num_inducing, num_inducing)), dtype=dtype)
        )
        self.column_mixing_tril = (
            Parameter(
                np.eye(self.rank),
                dtype=dtype,
                transform=tfp.bijectors.FillScaleTriL(
                    diag_bijector=tfp.bijectors.Exp(), diag_shift=None
                ),
            )
            if family == "AB"
            else None
        )

    def bartlett(self, dtype: tf.DType, *, constant: bool = False) -> GeneralisedBartlett:
        """Return the distribution of T, event shape [M, R].

        :param dtype: Of T.
        :param constant: Whether its parameters are constants for the gradient.
        """
        parameters = (self.concentration, self.rate, self.loc, self.scale)
        values = [tf.cast(parameter, dtype) for parameter in parameters]
        return GeneralisedBartlett(*(map(tf.stop_gradient, values) if constant else values))

    def mixing(self, dtype: tf.DType) -> Mixing:
        """Return A' and B.

        :param dtype: Of both.
        """
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
        self,
        factor: tf.Tensor,
        mixing: Mixing,
        precision: tf.Tensor | None,
        *,
        stick_the_landing: bool,
    ) -> tf.Tensor:
        """Return -½‖C A' T B‖² - log Q', the part of log P - log Q that depends on T, [S].

        :param factor: T, [S, M, R].
        :param mixing: A' and B.
        :param precision: CᵀC, [S, M, M], or None for the identity.
        :param stick_the_landing: Whether the density's own α, β, μ, σ are constants for the
            gradient, which leaves out a term whose expectation is zero (Roeder, Wu and Duvenaud,
            2017).
        """
        bartlett = self.bartlett(factor.dtype, constant=stick_the_landing)
        log_volume = self._log_volume(self._log_diagonal(factor))
        log_volume += self._log_volume_of_mixing(mixing)
        squared_norm = _squared_norm(mixing.mix(factor), precision)
        return -0.5 * squared_norm - bartlett.log_prob(factor) + log_volume

    def expected_log_ratio(
        self,
        factor: tf.Tensor,
        mixing: Mixing,
        precision: tf.Tensor | None,
        *,
        stick_the_landing: bool,
    ) -> tf.Tensor:
        """Return the expectation over T of :meth:`sampled_log_ratio`, in closed form, [S].

        :param factor: T, [S, M, R], for the gradient only.
        :param mixing: A' and B.
        :param precision: CᵀC, [S, M, M], or None for the identity.
        :param stick_the_landing: Whether the gradient of α, β, μ, σ, and of these alone, comes
            from T as in :meth:`sampled_log_ratio`. Its noise cancels against that of the
            likelihood as the posterior gets better; that of the closed form does not.
        """
        bartlett = self.bartlett(factor.dtype, constant=stick_the_landing)
        log_diagonal = 0.5 * (tf.math.digamma(bartlett.concentration) - tf.math.log(bartlett.rate))
        log_ratio = (
            -0.5 * self._expected_squared_norm(bartlett, mixing, precision)
            + bartlett.entropy()
            + self._log_volume_of_mixing(mixing)
        )
        if stick_the_landing:
            constants = Mixing(*map(tf.stop_gradient, mixing))
            constant_precision = None if precision is None else tf.stop_gradient(precision)
            squared_norm = _squared_norm(constants.mix(factor), constant_precision)
            log_ratio += _gradient_only(-0.5 * squared_norm - bartlett.log_prob(factor))
            log_diagonal += _gradient_only(self._log_diagonal(factor))
        return log_ratio + self._log_volume(log_diagonal)

    def _expected_squared_norm(
        self, bartlett: GeneralisedBartlett, mixing: Mixing, precision: tf.Tensor | None
    ) -> tf.Tensor:
        """E‖C A' T B‖² = tr(CᵀC E[A' T B Bᵀ Tᵀ A'ᵀ]), [S] or [1].

        The second moment on the right is the same for all draws:
        Y Yᵀ + A' diag_i(Σ_j Var(T_ij) ‖B_j:‖²) A'ᵀ for Y = A' E[T] B.
        """
        mean, variance = bartlett.mean_and_variance()
        mean = tf.matmul(mixing.rows, tf.matmul(mean, mixing.columns))
        row_norms = tf.reduce_sum(tf.square(mixing.columns), axis=-1)
        spread = tf.linalg.matvec(variance, row_norms)
        if precision is None:
            column_norms = tf.reduce_sum(tf.square(mixing.rows), axis=0)
            total = tf.reduce_sum(tf.square(mean)) + tf.reduce_sum(column_norms * spread)
            return total[None]
        second_moment = tf.matmul(mean, mean, transpose_b=True) + tf.matmul(
            mixing.rows * spread, mixing.rows, transpose_b=True
        )
        return tf.reduce_sum(precision * second_moment, axis=[-2, -1])

    def _log_diagonal(self, factor: tf.Tensor) -> tf.Tensor:
        return tf.math.log(tf.linalg.diag_part(factor[..., : self.rank, :]))

    def _log_volume(self, log_diagonal: tf.Tensor) -> tf.Tensor:
        """Logarithm of the volume change from T to G: what depends on T.

        Of log|det dG/dT| (sections A.7 and A.8 of the 2023 paper) this and
        :meth:`_log_volume_of_mixing` leave out the minor of G, which cancels against the Wishart
        prior's, and what depends on L alone. Here: Σ_j [log 2 + (ν - j) log T_jj].
        """
        j = tf.range(1, self.rank + 1, dtype=log_diagonal.dtype)
        return self.rank * np.log(2.0) + tf.reduce_sum((self.df - j) * log_diagonal, axis=-1)

    def _log_volume_of_mixing(self, mixing: Mixing) -> tf.Tensor:
        """The same: what depends on A' and B, Σ_j (M + ν - 2j + 1) log B_jj + ν log|det A'|."""
        log_volume = self.df * mixing.log_det_rows
        if self.column_mixing_tril is not None:
            log_column = tf.math.log(tf.linalg.diag_part(mixing.columns))
            j = tf.range(1, self.rank + 1, dtype=log_column.dtype)
            log_volume += tf.reduce_sum((self.num_inducing + self.df - 2 * j + 1) * log_column)
        return log_volume


def _unit_lower_and_upper(packed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The two triangles that are packed in one matrix, the second with its diagonal's logarithm."""
    ones = np.ones(packed.shape, packed.dtype.as_numpy_dtype)
    lower = packed * np.tril(ones, -1) + np.diag(ones[0])
    upper = packed * np.triu(ones, 1) + tf.linalg.diag(tf.exp(tf.linalg.diag_part(packed)))
    return lower, upper


def _squared_norm(columns: tf.Tensor, precision: tf.Tensor | None) -> tf.Tensor:
    """‖C X‖², from CᵀC, [S]."""
    weighted = columns if precision is None else tf.matmul(precision, columns)
    return tf.reduce_sum(columns * weighted, axis=[-2, -1])


def _gradient_only(tensor: tf.Tensor) -> tf.Tensor:
    """Zeros with the tensor's gradient."""
    return tensor - tf.stop_gradient(tensor)
