"""Targets of an inverse Wishart layer: what the prior adds to the draw at the inducing points."""

from __future__ import annotations

import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers._features import (
    grouped,
    grouped_outer,
    moments_of_each,
    moments_of_groups,
    squares,
)
from gpflow_dwp.layers._gamma_quantile import gamma_quantile
from gpflow_dwp.layers.base import GramDraw
from gpflow_dwp.layers.noise import TargetNoise
from gpflow_dwp.linalg import whiten
from gpflow_dwp.shapes import sizes

__all__ = ["condition_inverse_wishart", "divide"]


def condition_inverse_wishart(
    draw: GramDraw,
    blocks: TargetBlocks,
    noise: TargetNoise,
    df: tf.Tensor,
    *,
    jitter: float,
) -> TargetBlocks:
    r"""Draw G_it and G_tt given G_ii = F_i F_iᵀ.

    With C = U/√δ, U Uᵀ = G_{tt·i}, and H = K_ti K_ii⁻¹ F_i + C Zᵀ L⁻¹ F_i, [S, N, M], the
    conditional of :class:`InverseWishartLayer` is G_it = F_i Hᵀ and G_tt = δ C Cᵀ + H Hᵀ.

    :param draw: The inducing points' draw, with ``features`` F_i, [S, M, M].
    :param blocks: The blocks K_it and K_tt.
    :param noise: The targets' random numbers: Zᵀ, and those that C is made of.
    :param df: Degrees of freedom, δ, [].
    :param jitter: Relative jitter of the targets' covariance, where it is factorised.
    """
    gradient_dtype, dtype = noise.gradient_dtype, blocks.it.dtype
    numbers = noise.normal(draw.features.shape[-1] + 1)
    whitened_root, _ = whiten(draw.below, draw.features)
    # Rounding errors of noise matter no more than what they are errors of.
    deviation = tf.matmul(numbers[..., :-1], tf.cast(whitened_root, gradient_dtype))
    deviation, scores = tf.cast(deviation, dtype), tf.cast(numbers[..., -1], dtype)
    # With one target, the squared precision factor is 2 z with z ~ Gamma((δ + M + 2)/2, rate 1).
    first_concentration = 0.5 * (df + (draw.features.shape[-1] + 2.0))
    if blocks.are_single:
        mean, variance = moments_of_each(draw, blocks, gradient_dtype)
        square_spread = 0.5 * variance / gamma_quantile(first_concentration, scores)
        features = mean + tf.sqrt(square_spread)[..., None] * deviation
        tt = df * square_spread[..., None, None] + squares(features)
    else:
        mean, tril = moments_of_groups(draw, blocks, whitened_root, jitter)
        group_size = sizes(blocks.tt)[-1]
        lower = grouped(tf.cast(noise.fold_in(1).normal(group_size), dtype), blocks.tt)
        scores = tf.reshape(scores, sizes(lower)[:-1])
        precision_factor = _precision_factor(first_concentration, scores, lower)
        spread = divide(tril, precision_factor)
        correlated = tf.matmul(spread, grouped(deviation, blocks.tt))
        features = mean + tf.reshape(correlated, sizes(deviation))
        tt = df * tf.matmul(spread, spread, transpose_b=True)
        tt += grouped_outer(features, blocks.tt)
    return TargetBlocks(tf.matmul(draw.features, features, transpose_b=True), tt, features)


def _precision_factor(
    first_concentration: tf.Tensor, scores: tf.Tensor, lower: tf.Tensor
) -> tf.Tensor:
    """The precision factor of :class:`InverseWishart`, of one row for each target, [..., K, K].

    :param scores: Normal scores of its squared diagonal, [..., K].
    :param lower: Standard normal numbers for what is below the diagonal, [..., K, K].
    """
    index = tf.range(tf.shape(scores)[-1], dtype=scores.dtype)
    square = 2.0 * gamma_quantile(first_concentration + 0.5 * index, scores)
    return tf.linalg.set_diag(tf.linalg.band_part(lower, -1, 0), tf.sqrt(square))


def divide(numerator: tf.Tensor, tril: tf.Tensor) -> tf.Tensor:
    """Solve X V = R for X, which is Vᵀ Xᵀ = Rᵀ.

    :param numerator: R, [..., N, N], with leading axes that broadcast with those of V.
    :param tril: V, lower triangular, [..., N, N].
    """
    numerator += tf.zeros_like(tril)
    solution = tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(numerator), adjoint=True)
    return tf.linalg.matrix_transpose(solution)
