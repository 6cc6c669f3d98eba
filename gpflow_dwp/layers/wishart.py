"""The hidden layer of a deep Wishart process."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.kernels import Kernel

from gpflow_dwp.base import Seed
from gpflow_dwp.distributions import ABGeneralisedSingularWishart, SingularWishart
from gpflow_dwp.distributions.kullback_leibler import wishart_log_normaliser
from gpflow_dwp.layers._features import FeatureLayer
from gpflow_dwp.layers.base import Description, GramDraw
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily, ScaleMixture, WishartPosterior
from gpflow_dwp.linalg import cholesky
from gpflow_dwp.linalg.triangular import relative_precision
from gpflow_dwp.papers import DEEP_WISHART_PROCESS, IMPROVED_POSTERIOR
from gpflow_dwp.random import as_generator
from gpflow_dwp.validation import check_flags, check_integers, check_memory

__all__ = ["WishartLayer"]


class WishartLayer(FeatureLayer):
    r"""Draws a Gram matrix: a priori G ~ W(K/ν, ν), with K the kernel of what is below.

    The posterior over the inducing block is G_ii = F_i F_iᵀ with F_i = A T B (see
    :class:`WishartPosterior`). With S = K_ii/ν, the row mixing is

    .. math:: A = \operatorname{chol}((1 - q) S + q\, s V V^T / M) A'

    (Ober, Anson, Milsom and Aitchison, 2023, section 5.2, equation 16) or, whitened,
    A = chol(S) A', which needs one factorisation fewer, gives up q, s and V, and makes the layer's
    divergence independent of S. Targets follow from the prior: the rows of F_t are Gaussian given
    F_i.

    The minor ``|G_{:R,:R}|`` is part of both log P and log Q and cancels from the log ratio, so no
    density of G is evaluated: with A = L_A A' and C = L_S⁻¹ A,

    .. math:: \log P - \log Q
              = c + \nu (\log|L_A| - \log|L_S|) - \tfrac12 \|C T B\|^2 - \log Q',

    where log Q' is what T, A' and B contribute (:class:`WishartPosterior`). :meth:`prior`
    and :meth:`posterior` give the same as the difference of two log densities.

    Further parameters are those of :class:`GramLayer`.

    :param df: Degrees of freedom, ν: the width of the deep GP with the same prior.
    :param posterior: "GW", "A" or "AB".
    :param whiten: Whether A = chol(S) A'.
    :param proportion: Where q starts, in (0, 1). With the published code's start, 0.018, the random
        V is dear where a smooth kernel makes S nearly singular: thousands of nats for each row.
    :param expected_log_ratio: Whether the log ratio is the closed form of its expectation given
        the covariance from below, or a sample of it. Either way its gradient reaches α, β, μ, σ
        only through the draw: see :class:`WishartPosterior`.
    :param seed: For the starting values of μ and V.
    :raises ValueError: If an argument is not as said here, or too large for the machine's memory.
    """

    kept_as: ClassVar[dict[str, str]] = {"posterior": "bartlett_factor.family"}

    def __init__(
        self,
        kernel: Kernel,
        df: int,
        num_inducing: int,
        posterior: PosteriorFamily = "AB",
        whiten: bool = False,
        *,
        proportion: float = 1e-6,
        expected_log_ratio: bool = True,
        jitter: float | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        check_integers(df=df, num_inducing=num_inducing)
        check_flags(whiten=whiten, expected_log_ratio=expected_log_ratio)
        check_memory(num_inducing, max(df, num_inducing), df=df, num_inducing=num_inducing)
        super().__init__(kernel, int(num_inducing), jitter)
        rng = as_generator(seed)
        self.df = self.num_features = int(df)
        self.whiten = whiten
        self.proportion = proportion
        self.expected_log_ratio = expected_log_ratio
        self.bartlett_factor = WishartPosterior(self.df, self.num_inducing, posterior, rng)
        self.scale_mixture = None if whiten else ScaleMixture(self.num_inducing, proportion, rng)

    @property
    def papers(self) -> tuple[str, ...]:
        """BibTeX of what its posterior rests on."""
        is_first = self.bartlett_factor.family == "GW"
        return (DEEP_WISHART_PROCESS, *(() if is_first else (IMPROVED_POSTERIOR,)))

    def describe(self) -> Description:
        factor, size = self.bartlett_factor, self.num_inducing
        family = "GW" if factor.family == "GW" else f"{factor.family}-GW"  # as the papers have it
        family += ", whitened" if self.whiten else ""
        return Description(f"Gram matrix [{size}, {size}], rank {factor.rank}", family)

    @inherit_check_shapes
    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        below = self._factorise(covariance)
        dtype = covariance.dtype
        factor = self.bartlett_factor.bartlett(dtype).sample(num_samples, seed=seed)
        mixing = self.bartlett_factor.mixing(dtype)
        mixed = mixing.mix(factor)

        # Scales are relative to K = ν S, so L_S = L/√ν and ‖L_S⁻¹ F‖² = ν ‖L⁻¹ F‖².
        if self.scale_mixture is None:
            precision, log_det_ratio = None, tf.zeros([1], dtype)
            features = tf.matmul(cholesky(below), mixed)
        else:
            scale = self._factorise(covariance, self.scale_mixture.mix(covariance, self.df))
            precision, features, log_det_ratio = relative_precision(below, scale, mixed)
        posterior = self.bartlett_factor
        expected = self.expected_log_ratio
        log_ratio_of = posterior.expected_log_ratio if expected else posterior.sampled_log_ratio
        features /= np.sqrt(self.df)
        return GramDraw(
            gram=tf.matmul(features, features, transpose_b=True),
            features=features,
            below=below,
            log_ratio=log_ratio_of(factor, mixing, precision)
            + wishart_log_normaliser(self.df, self.num_inducing)
            + self.df * log_det_ratio,
        )

    @check_shapes("covariance: [S, M, M]")
    def prior(self, covariance: tf.Tensor) -> SingularWishart:
        """Return P(G_ii) given K_ii, [S, M, M]."""
        scale_tril = cholesky(self._factorise(covariance)) / np.sqrt(self.df)
        return SingularWishart(self.df, scale_tril)

    @check_shapes("covariance: [S, M, M]")
    def posterior(self, covariance: tf.Tensor) -> ABGeneralisedSingularWishart:
        """Return Q(G_ii) given K_ii, [S, M, M]: an AB-GW (A' or B may be I)."""
        mixture = self.scale_mixture
        scale = None if mixture is None else mixture.mix(covariance, self.df)
        scale_tril = cholesky(self._factorise(covariance, scale))
        bartlett = self.bartlett_factor.bartlett(covariance.dtype)
        mixing = self.bartlett_factor.mixing(covariance.dtype)
        return ABGeneralisedSingularWishart(
            self.df,
            tf.matmul(scale_tril, mixing.rows) / np.sqrt(self.df),
            mixing.columns,
            bartlett.concentration,
            bartlett.rate,
            bartlett.loc,
            bartlett.scale,
        )
