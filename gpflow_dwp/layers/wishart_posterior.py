"""The approximate posterior over one layer's Gram matrix: GW, A-GW and AB-GW."""

from __future__ import annotations

from typing import Literal, get_args

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float
from gpflow.utilities import positive

from gpflow_dwp.distributions import GeneralisedBartlett

__all__ = ["PosteriorFamily", "WishartPosterior"]

PosteriorFamily = Literal["GW", "A", "AB"]
"""Which parts of the Bartlett factor the posterior mixes: none, rows, or rows and columns."""


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
        if family not in get_args(PosteriorFamily):
            raise ValueError(
                f"posterior must be one of {', '.join(get_args(PosteriorFamily))}, got {family!r}."
            )
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

    def bartlett(self, *, constant: bool = False) -> GeneralisedBartlett:
        """Return the distribution of T, event shape [M, R].

        :param constant: Whether its parameters are constants for the gradient.
        """
        parameters = (self.concentration, self.rate, self.loc, self.scale)
        values = [tf.convert_to_tensor(parameter) for parameter in parameters]
        return GeneralisedBartlett(*(map(tf.stop_gradient, values) if constant else values))

    def row_mixing(self) -> tf.Tensor:
        """Return A', [M, M]."""
        if self.packed_row_mixing is None:
            return tf.eye(self.num_inducing, dtype=default_float())
        return tf.matmul(*self._row_mixing_factors())

    def log_det_row_mixing(self) -> tf.Tensor:
        """Return log|det A'|, []."""
        if self.packed_row_mixing is None:
            return tf.zeros([], default_float())
        return tf.reduce_sum(tf.linalg.diag_part(self.packed_row_mixing))

    def column_mixing(self) -> tf.Tensor:
        """Return B, [R, R]."""
        if self.column_mixing_tril is None:
            return tf.eye(self.rank, dtype=default_float())
        return tf.convert_to_tensor(self.column_mixing_tril)

    def mix(self, bartlett_factor: tf.Tensor) -> tf.Tensor:
        """Return A' T B for T of shape [S, M, R]."""
        mixed = bartlett_factor
        if self.column_mixing_tril is not None:
            mixed = tf.matmul(mixed, self.column_mixing())
        if self.packed_row_mixing is not None:
            lower, upper = self._row_mixing_factors()
            mixed = tf.einsum("mk,skr->smr", upper, mixed)
            mixed = tf.einsum("mk,skr->smr", lower, mixed)
        return mixed

    def sampled_log_ratio(
        self, factor: tf.Tensor, squared_norm: tf.Tensor, *, stick_the_landing: bool
    ) -> tf.Tensor:
        """Return -½‖C A' T B‖² - log Q', the part of log P - log Q that depends on T, [S].

        :param factor: T, [S, M, R].
        :param squared_norm: ‖C A' T B‖², [S].
        :param stick_the_landing: Whether the density's own α, β, μ, σ are constants for the
            gradient, which leaves out a term whose expectation is zero (Roeder, Wu and Duvenaud,
            2017).
        """
        bartlett = self.bartlett(constant=stick_the_landing)
        log_volume = self._log_volume(self._log_diagonal(factor)) + self._log_volume_of_mixing()
        return -0.5 * squared_norm - bartlett.log_prob(factor) + log_volume

    def expected_log_ratio(
        self, factor: tf.Tensor, left: tf.Tensor | None, *, stick_the_landing: bool
    ) -> tf.Tensor:
        """Return the expectation over T of :meth:`sampled_log_ratio`, in closed form, [S].

        :param factor: T, [S, M, R], for the gradient only.
        :param left: C, [S, M, M], or None for the identity.
        :param stick_the_landing: Whether the gradient of α, β, μ, σ, and of these alone, comes
            from T as in :meth:`sampled_log_ratio`. Its noise cancels against that of the
            likelihood as the posterior gets better; that of the closed form does not.
        """
        bartlett = self.bartlett(constant=stick_the_landing)
        row_mixing = self.row_mixing()
        # einsum makes one product of a batch that shares a factor.
        mixing = row_mixing[None] if left is None else tf.einsum("smk,kn->smn", left, row_mixing)
        expected_log_diagonal = 0.5 * (
            tf.math.digamma(bartlett.concentration) - tf.math.log(bartlett.rate)
        )
        log_ratio = (
            -0.5 * self._expected_squared_norm(bartlett, mixing)
            + bartlett.entropy()
            + self._log_volume(expected_log_diagonal)
            + self._log_volume_of_mixing()
        )
        if not stick_the_landing:
            return log_ratio
        mixed = tf.matmul(
            tf.stop_gradient(mixing), tf.matmul(factor, tf.stop_gradient(self.column_mixing()))
        )
        path = (
            -0.5 * tf.reduce_sum(tf.square(mixed), axis=[-2, -1])
            - bartlett.log_prob(factor)
            + self._log_volume(self._log_diagonal(factor))
        )
        return log_ratio + (path - tf.stop_gradient(path))

    def _expected_squared_norm(self, bartlett: GeneralisedBartlett, mixing: tf.Tensor) -> tf.Tensor:
        """E‖C A' T B‖² = ‖C A' E[T] B‖² + Σ_ij Var(T_ij) ‖(C A')_:i‖² ‖B_j:‖², [S]."""
        column_mixing = self.column_mixing()
        mean = tf.matmul(mixing, tf.matmul(bartlett.mean(), column_mixing))
        column_norms = tf.reduce_sum(tf.square(mixing), axis=-2)
        row_norms = tf.reduce_sum(tf.square(column_mixing), axis=-1)
        spread = tf.linalg.matvec(bartlett.variance(), row_norms)
        return tf.reduce_sum(tf.square(mean), axis=[-2, -1]) + tf.linalg.matvec(
            column_norms, spread
        )

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

    def _log_volume_of_mixing(self) -> tf.Tensor:
        """The same: what depends on A' and B, Σ_j (M + ν - 2j + 1) log B_jj + ν log|det A'|."""
        log_volume = self.df * self.log_det_row_mixing()
        if self.column_mixing_tril is not None:
            log_column = tf.math.log(tf.linalg.diag_part(self.column_mixing()))
            j = tf.range(1, self.rank + 1, dtype=log_column.dtype)
            log_volume += tf.reduce_sum((self.num_inducing + self.df - 2 * j + 1) * log_column)
        return log_volume

    def _row_mixing_factors(self) -> tuple[tf.Tensor, tf.Tensor]:
        packed = tf.convert_to_tensor(self.packed_row_mixing)
        strictly_lower = tf.linalg.band_part(packed, -1, 0)
        lower = tf.linalg.set_diag(strictly_lower, tf.ones_like(packed[0]))
        upper = tf.linalg.set_diag(
            tf.linalg.band_part(packed, 0, -1), tf.exp(tf.linalg.diag_part(packed))
        )
        return lower, upper
