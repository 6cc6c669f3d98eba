"""Targets of an inverse Wishart layer: what the prior adds to the draw at the inducing points."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers._features import grouped, grouped_outer
from gpflow_dwp.layers._gamma_quantile import gamma_quantile
from gpflow_dwp.layers.base import GramDraw
from gpflow_dwp.linalg import (
    cholesky,
    conditional_moments,
    factorise,
    relative_jitter,
    whiten,
)
from gpflow_dwp.random import as_seed, normal_at_points

__all__ = ["condition_inverse_wishart", "divide"]


def condition_inverse_wishart(
    draw: GramDraw,
    covariance: TargetBlocks,
    noise: tf.Tensor,
    df: tf.Tensor,
    *,
    jitter: float,
    full_cov: bool,
) -> TargetBlocks:
    r"""Draw G_it and G_tt given G_ii = F_i F_iᵀ.

    With C = U/√δ, U Uᵀ = G_{tt·i}, and H = K_ti K_ii⁻¹ F_i + C Zᵀ L⁻¹ F_i, [S, N, M], the
    conditional of :class:`InverseWishartLayer` is G_it = F_i Hᵀ and G_tt = δ C Cᵀ + H Hᵀ.

    :param draw: The inducing points' draw, with ``root`` F_i, [S, M, M].
    :param covariance: The blocks K_it and K_tt; the latter [S, N/K, K, K] where groups of K
        successive targets are drawn jointly.
    :param noise: Standard normal numbers, [S, N, M + 1]: Zᵀ, and those that C is made of.
    :param df: δ, [].
    :param jitter: Relative jitter of the targets' covariance, where it is factorised.
    :param full_cov: Whether targets are drawn jointly.
    """
    gradient_dtype, dtype = noise.dtype, covariance.it.dtype
    whitened_root, _ = whiten(draw.covariance, draw.root)
    # Rounding errors of noise matter no more than what they are errors of.
    deviation = tf.cast(tf.matmul(noise[..., :-1], tf.cast(whitened_root, gradient_dtype)), dtype)
    noise = tf.cast(noise, dtype)
    # With one target, the squared precision factor is 2 z with z ~ Gamma((δ + M + 2)/2, rate 1).
    first_concentration = 0.5 * (df + (draw.root.shape[-1] + 2.0))
    if full_cov:
        projected, _ = whiten(draw.covariance, covariance.it)
        mean = tf.matmul(projected, whitened_root, transpose_a=True)
        explained = grouped_outer(tf.linalg.matrix_transpose(projected), covariance.tt)
        remainder = covariance.tt - explained
        factorised = factorise(
            remainder,
            relative_jitter(covariance.tt, jitter) + tf.zeros_like(remainder[..., 0, 0]),
            name="a layer's covariance of the targets given the inducing points",
        )
        precision_factor = _precision_factor(first_concentration, grouped(noise, covariance.tt))
        spread = divide(cholesky(factorised), precision_factor)
        deviation = tf.matmul(spread, grouped(deviation, covariance.tt))
        features = mean + tf.reshape(deviation, tf.shape(noise[..., :-1]))
        tt = df * tf.matmul(spread, spread, transpose_b=True)
        tt += grouped_outer(features, covariance.tt)
    else:
        mean, explained = conditional_moments(
            draw.covariance, covariance.it, draw.root, gradient_dtype=gradient_dtype
        )
        # Cancellation may leave a rounding error, where the square root has no derivative.
        floor = np.finfo(dtype.as_numpy_dtype).eps * covariance.tt
        variance = tf.maximum(covariance.tt - explained, floor)
        half_square = gamma_quantile(first_concentration, noise[..., -1])
        square_spread = 0.5 * variance / half_square
        features = mean + tf.sqrt(square_spread)[..., None] * deviation
        tt = df * square_spread + tf.reduce_sum(tf.square(features), axis=-1)
    return TargetBlocks(tf.matmul(draw.root, features, transpose_b=True), tt, features)


def _precision_factor(first_concentration: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """The precision factor of :class:`InverseWishart`, of one row for each target, [..., N, N]."""
    shape = tf.shape(noise)
    size = shape[-2]
    index = tf.range(size, dtype=noise.dtype)
    square = 2.0 * gamma_quantile(first_concentration + 0.5 * index, noise[..., -1])
    # The targets' own numbers are too few for what is below the diagonal: a hash of them is used.
    rows = tf.reshape(noise, [-1, noise.shape[-1]])
    below = tf.reshape(
        normal_at_points(rows, as_seed(0), 1, size), tf.concat([shape[:-1], [size]], axis=0)
    )
    return tf.linalg.set_diag(tf.linalg.band_part(below, -1, 0), tf.sqrt(square))


def divide(numerator: tf.Tensor, tril: tf.Tensor) -> tf.Tensor:
    """Solve X V = R for X, which is Vᵀ Xᵀ = Rᵀ.

    :param numerator: R, [..., N, N], with leading axes that broadcast with those of V.
    :param tril: V, lower triangular, [..., N, N].
    """
    numerator += tf.zeros_like(tril)
    solution = tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(numerator), adjoint=True)
    return tf.linalg.matrix_transpose(solution)
