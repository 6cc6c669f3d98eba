"""The approximate posterior over one layer's Gram matrix: GW, A-GW and AB-GW."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float
from gpflow.utilities import positive

from gpflow_dwp.base import Seed
from gpflow_dwp.distributions import GeneralisedBartlett

__all__ = ["PosteriorFamily", "RootDraw", "WishartPosterior"]

PosteriorFamily = Literal["GW", "A", "AB"]
"""Which parts of the Bartlett factor the posterior mixes: none, rows, or rows and columns."""


class RootDraw(NamedTuple):
    """Draws of the mixed Bartlett factor, and what the layer's log ratio needs of them.

    :param root: A' T B, [S, M, R].
    :param log_density: The part of log Q(G) that does not depend on the covariance from below,
        or its expectation, [S].
    """

    root: tf.Tensor
    log_density: tf.Tensor


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

    def bartlett(self) -> GeneralisedBartlett:
        """Return the distribution of T, event shape [M, R]."""
        return GeneralisedBartlett(
            tf.convert_to_tensor(self.concentration),
            tf.convert_to_tensor(self.rate),
            tf.convert_to_tensor(self.loc),
            tf.convert_to_tensor(self.scale),
        )

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
            mixed = tf.matmul(lower, tf.matmul(upper, mixed))
        return mixed

    def sample(self, num_samples: int, seed: Seed, *, stick_the_landing: bool) -> RootDraw:
        """Draw A' T B with the logarithm of its density at the draw.

        :param num_samples: S.
        :param seed: A stateless seed, [2].
        :param stick_the_landing: Whether the density's own α, β, μ, σ are constants for the
            gradient, which leaves out a term whose expectation is zero (Roeder, Wu and Duvenaud,
            2017).
        """
        bartlett = self.bartlett()
        factor = bartlett.sample(num_samples, seed=seed)
        if stick_the_landing:
            bartlett = GeneralisedBartlett(
                *(
                    tf.stop_gradient(parameter)
                    for parameter in (
                        bartlett.concentration,
                        bartlett.rate,
                        bartlett.loc,
                        bartlett.scale,
                    )
                )
            )
        log_diagonal = tf.math.log(tf.linalg.diag_part(factor[..., : self.rank, :]))
        log_density = bartlett.log_prob(factor) - self._log_volume(log_diagonal)
        return RootDraw(root=self.mix(factor), log_density=log_density)

    def sample_with_expected_density(self, num_samples: int, seed: Seed) -> RootDraw:
        """Draw A' T B, with the expectation over draws of the logarithm of its density.

        :param num_samples: S.
        :param seed: A stateless seed, [2].
        """
        bartlett = self.bartlett()
        expected_log_diagonal = 0.5 * (
            tf.math.digamma(bartlett.concentration) - tf.math.log(bartlett.rate)
        )
        log_density = -bartlett.entropy() - self._log_volume(expected_log_diagonal)
        return RootDraw(
            root=self.mix(bartlett.sample(num_samples, seed=seed)), log_density=log_density[None]
        )

    def expected_squared_norm(self, left: tf.Tensor | None) -> tf.Tensor:
        """Return E‖C A' T B‖², given C, [S, M, M] (None for the identity).

        ‖C A' E[T] B‖² + Σ_ij Var(T_ij) ‖(C A')_:i‖² ‖B_j:‖².

        :return: [S].
        """
        bartlett = self.bartlett()
        row_mixing = self.row_mixing()
        mixing = row_mixing[None] if left is None else tf.matmul(left, row_mixing)
        column_mixing = self.column_mixing()
        mean = tf.matmul(mixing, tf.matmul(bartlett.mean(), column_mixing))
        column_norms = tf.reduce_sum(tf.square(mixing), axis=-2)
        row_norms = tf.reduce_sum(tf.square(column_mixing), axis=-1)
        spread = tf.linalg.matvec(bartlett.variance(), row_norms)
        return tf.reduce_sum(tf.square(mean), axis=[-2, -1]) + tf.linalg.matvec(
            column_norms, spread
        )

    def _log_volume(self, log_diagonal: tf.Tensor) -> tf.Tensor:
        """Logarithm of the volume change from T to G, but for the terms in |G_:R| and L.

        Of log|det dG/dT| (section A.7 and A.8 of the 2023 paper) this leaves out the minor of G,
        which cancels against the Wishart prior's, and what depends on L alone:
        Σ_j [log 2 + (ν - j) log T_jj + (M + ν - 2j + 1) log B_jj] + ν log|det A'|.
        """
        dtype = log_diagonal.dtype
        j = tf.range(1, self.rank + 1, dtype=dtype)
        log_volume = (
            self.rank * np.log(2.0)
            + tf.linalg.matvec(log_diagonal[..., None, :], self.df - j)[..., 0]
        )
        if self.column_mixing_tril is not None:
            log_column = tf.math.log(tf.linalg.diag_part(self.column_mixing()))
            log_volume += tf.reduce_sum((self.num_inducing + self.df - 2 * j + 1) * log_column)
        return log_volume + self.df * self.log_det_row_mixing()

    def _row_mixing_factors(self) -> tuple[tf.Tensor, tf.Tensor]:
        packed = tf.convert_to_tensor(self.packed_row_mixing)
        strictly_lower = tf.linalg.band_part(packed, -1, 0)
        lower = tf.linalg.set_diag(strictly_lower, tf.ones_like(packed[0]))
        upper = tf.linalg.set_diag(
            tf.linalg.band_part(packed, 0, -1), tf.exp(tf.linalg.diag_part(packed))
        )
        return lower, upper
