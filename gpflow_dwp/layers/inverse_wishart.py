"""The hidden layer of a deep inverse Wishart process."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.kernels import Kernel
from gpflow.utilities import positive

from gpflow_dwp.base import Seed, TargetBlocks, sizes
from gpflow_dwp.distributions import InverseWishart
from gpflow_dwp.distributions.gamma import gamma_quantile
from gpflow_dwp.layers._features import joint_moments, moments_of_each
from gpflow_dwp.layers.base import Description, GramDraw, GramLayer
from gpflow_dwp.linalg import Factorised, cholesky, whiten
from gpflow_dwp.papers import DEEP_KERNEL_PROCESSES
from gpflow_dwp.random import TargetNoise, as_generator
from gpflow_dwp.validation import check_flags, check_integers, check_memory, check_positive

__all__ = ["InverseWishartLayer"]


class InverseWishartLayer(GramLayer):
    r"""Draws a Gram matrix: a priori G ~ W⁻¹(δ K, δ + P + 1), with K the kernel of what is below.

    P is the number of all points, G and K are [P, P], and W⁻¹ is :class:`InverseWishart`; its mean
    is K, and as δ grows G approaches it (Aitchison, Yang and Ober, "Deep kernel processes", 2021,
    where δ is learned, as it is here). A leading block of a W⁻¹(Ψ, n) matrix is
    W⁻¹(Ψ_{:m,:m}, n - P + m), so the process is consistent: a block of m points is
    W⁻¹(δ K_{:m,:m}, δ + m + 1), the law it has where there are no other points. The approximate
    posterior over the block of the M inducing points is the paper's,

    .. math:: Q(G_{ii}) = W^{-1}(\delta K_{ii} + s V V^T / M, \; \delta + \gamma + M + 1),

    what an observation of features V with γ degrees of freedom would make of the prior.
    :meth:`prior` and :meth:`posterior` are the two; the log ratio is the difference of their log
    densities, or its expectation given K_ii, minus their Kullback-Leibler divergence.

    Targets follow from the prior. With K_{tt·i} = K_tt - K_ti K_ii⁻¹ K_it, the same for G, K_ii =
    L Lᵀ, and N targets (N = 1, each by itself, without ``full_cov``), G_{tt·i} and Z, standard
    normal, [M, N], are independent of each other and of G_ii, and

    .. math:: G_{tt \cdot i} &\sim W^{-1}(\delta K_{tt \cdot i}, \delta + M + N + 1), \\
              G_{ii}^{-1} G_{it} &= K_{ii}^{-1} K_{it} + L^{-T} Z U^T / \sqrt\delta, \quad
              U U^T = G_{tt \cdot i}.

    Further parameters are those of :class:`GramLayer`.

    :param df: Starting value of δ, degrees of freedom beyond those at which the mean begins to
        exist. It is trainable: ``gpflow.set_trainable(layer.df, False)`` keeps it.
    :param extra_df: Starting value of γ, which the posterior has on top of them.
    :param expected_log_ratio: Whether the log ratio is the closed form of its expectation given
        the covariance from below, or a sample of it.
    :param seed: For the starting value of V, standard normal.
    :raises ValueError: If an argument is not as said here, or too large for the machine's memory.
    """

    papers: ClassVar[tuple[str, ...]] = (DEEP_KERNEL_PROCESSES,)

    def __init__(
        self,
        kernel: Kernel,
        num_inducing: int,
        *,
        df: float = np.exp(4.0),
        extra_df: float = 1.0,
        expected_log_ratio: bool = True,
        jitter: float | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        check_integers(num_inducing=num_inducing)
        check_positive(df=df, extra_df=extra_df)
        check_flags(expected_log_ratio=expected_log_ratio)
        check_memory(num_inducing, num_inducing, num_inducing=num_inducing)
        super().__init__(kernel, int(num_inducing), jitter)
        self.expected_log_ratio = expected_log_ratio
        self.df = Parameter(df, transform=positive(base="exp"))
        self.extra_df = Parameter(extra_df, transform=positive(base="exp"))
        self.root = Parameter(as_generator(seed).standard_normal((num_inducing, num_inducing)))
        self.root_scale = Parameter(1.0, transform=positive(base="exp"))

    def describe(self) -> Description:
        return super().describe()._replace(posterior="inverse Wishart")

    @inherit_check_shapes
    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        below, scale = self._factorise(covariance), self._factorise_posterior(covariance)
        scale_tril = cholesky(scale)
        df, extra_df = self._degrees_of_freedom(covariance.dtype)
        posterior = self._inverse_wishart(scale_tril, df + extra_df)
        precision_factor = posterior.precision_factor.sample(num_samples, seed=seed)

        features = tf.sqrt(df) * _divide(scale_tril, precision_factor)
        ratio, _ = whiten(scale, cholesky(below))
        return GramDraw(
            gram=tf.matmul(features, features, transpose_b=True),
            features=features,
            below=below,
            log_ratio=self._log_ratio(ratio, precision_factor),
        )

    @inherit_check_shapes
    def condition(self, draw: GramDraw, blocks: TargetBlocks, noise: TargetNoise) -> TargetBlocks:
        # With C = U/√δ and H = K_ti K_ii⁻¹ F_i + C Zᵀ L⁻¹ F_i, [S, N, M], targets have
        # G_it = F_i Hᵀ and G_tt = δ C Cᵀ + H Hᵀ.
        gradient_dtype, dtype = noise.gradient_dtype, blocks.it.dtype
        df = tf.cast(self.df, dtype)
        numbers = noise.normal(self.num_inducing + 1)
        whitened_root, _ = whiten(draw.below, draw.features)
        # Rounding errors of noise matter no more than what they are errors of.
        deviation = tf.matmul(numbers[..., :-1], tf.cast(whitened_root, gradient_dtype))
        deviation, scores = tf.cast(deviation, dtype), tf.cast(numbers[..., -1], dtype)
        # With one target, the squared precision factor is 2 z, z ~ Gamma((δ + M + 2)/2, rate 1).
        concentration = 0.5 * (df + (self.num_inducing + 2.0))
        if blocks.are_single:
            mean, variance = moments_of_each(draw, blocks, gradient_dtype)
            square_spread = 0.5 * variance / gamma_quantile(concentration, scores)
            features = mean + tf.sqrt(square_spread)[..., None] * deviation
            own = df * square_spread
        else:
            mean, tril = joint_moments(draw, blocks, whitened_root, self.jitter)
            lower = tf.cast(noise.fold_in(1).normal(sizes(blocks.tt)[-1]), dtype)
            spread = _divide(tril, _precision_factor(concentration, scores, lower))
            features = mean + tf.matmul(spread, deviation)
            own = df * tf.matmul(spread, spread, transpose_b=True)
        it = tf.matmul(draw.features, features, transpose_b=True)
        return TargetBlocks(it, own + blocks.inner_products(features), features)

    @check_shapes("covariance: [S, M, M]")
    def prior(self, covariance: tf.Tensor) -> InverseWishart:
        """Return P(G_ii) given K_ii, [S, M, M]."""
        df, _ = self._degrees_of_freedom(covariance.dtype)
        return self._inverse_wishart(cholesky(self._factorise(covariance)), df)

    @check_shapes("covariance: [S, M, M]")
    def posterior(self, covariance: tf.Tensor) -> InverseWishart:
        """Return Q(G_ii) given K_ii, [S, M, M]."""
        scale_tril = cholesky(self._factorise_posterior(covariance))
        df, extra_df = self._degrees_of_freedom(covariance.dtype)
        return self._inverse_wishart(scale_tril, df + extra_df)

    def _degrees_of_freedom(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """δ and γ, in the precision of what is computed with them."""
        return tf.cast(self.df, dtype), tf.cast(self.extra_df, dtype)

    def _inverse_wishart(self, scale_tril: tf.Tensor, df: tf.Tensor) -> InverseWishart:
        # Scales are kept relative to δ, as K_ii = L Lᵀ and K_q = L_q L_qᵀ.
        own_df, _ = self._degrees_of_freedom(scale_tril.dtype)
        return InverseWishart(df + (self.num_inducing + 1.0), tf.sqrt(own_df) * scale_tril)

    def _factorise_posterior(self, covariance: tf.Tensor) -> Factorised:
        root, root_scale = (
            tf.cast(part, covariance.dtype) for part in (self.root, self.root_scale)
        )
        df, _ = self._degrees_of_freedom(covariance.dtype)
        learned = tf.matmul(root, root, transpose_b=True) / self.num_inducing
        return self._factorise(covariance, covariance + root_scale / df * learned)

    def _log_ratio(self, ratio: tf.Tensor, precision_factor: tf.Tensor) -> tf.Tensor:
        """Log P - log Q at G_ii = δ (L_q X⁻¹)(L_q X⁻¹)ᵀ, or its expectation, -KL[Q ‖ P], [S].

        :param ratio: L_q⁻¹ L, [S, M, M].
        :param precision_factor: Factor of the precision, X, [S, M, M].
        """
        M, (df, extra_df) = self.num_inducing, self._degrees_of_freedom(ratio.dtype)
        # Of X_jj², under prior and posterior.
        prior = 0.5 * (df + tf.range(2, M + 2, dtype=ratio.dtype))
        posterior = prior + 0.5 * extra_df
        # The part that does not depend on X, where |G_ii| is written as |δ K_q| / |X|².
        log_det_ratio = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(ratio)), axis=-1)
        log_gamma_ratio = tf.reduce_sum(tf.math.lgamma(posterior) - tf.math.lgamma(prior))
        constant = (df + (M + 1.0)) * log_det_ratio + log_gamma_ratio
        if self.expected_log_ratio:
            total_df = df + extra_df + (M + 1.0)
            expected_trace = total_df * tf.reduce_sum(tf.square(ratio), axis=[-2, -1])
            expected_log = extra_df * tf.reduce_sum(tf.math.digamma(posterior))
            return constant - 0.5 * expected_log + 0.5 * (total_df * M - expected_trace)
        log_diagonal = tf.math.log(tf.linalg.diag_part(precision_factor))
        # The trace of δ K_q G⁻¹ is ‖X‖², and that of δ K_ii G⁻¹ is ‖X L_q⁻¹ L‖².
        traces = tf.square(precision_factor) - tf.square(tf.matmul(precision_factor, ratio))
        return (
            constant
            + extra_df * tf.reduce_sum(0.5 * np.log(2.0) - log_diagonal, axis=-1)
            + 0.5 * tf.reduce_sum(traces, axis=[-2, -1])
        )


def _precision_factor(
    first_concentration: tf.Tensor, scores: tf.Tensor, lower: tf.Tensor
) -> tf.Tensor:
    """The precision factor of :class:`InverseWishart`, of one row for each target, [..., K, K].

    :param scores: Normal scores of its squared diagonal, [..., K].
    :param lower: Standard normal numbers, of which those below the diagonal are taken.
    """
    index = tf.range(tf.shape(scores)[-1], dtype=scores.dtype)
    square = 2.0 * gamma_quantile(first_concentration + 0.5 * index, scores)
    return tf.linalg.set_diag(tf.linalg.band_part(lower, -1, 0), tf.sqrt(square))


def _divide(numerator: tf.Tensor, tril: tf.Tensor) -> tf.Tensor:
    """Solve X V = R for X, which is Vᵀ Xᵀ = Rᵀ.

    :param numerator: R, [..., N, N], with leading axes that broadcast with those of V.
    :param tril: V, lower triangular, [..., N, N].
    """
    numerator += tf.zeros_like(tril)
    solution = tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(numerator), adjoint=True)
    return tf.linalg.matrix_transpose(solution)
