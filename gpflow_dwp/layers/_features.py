"""Targets of layers whose Gram matrix is F Fᵀ with Gaussian F: what both kinds share."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers.base import GramDraw
from gpflow_dwp.layers.noise import TargetNoise
from gpflow_dwp.linalg import (
    cholesky,
    conditional_mean,
    conditional_moments,
    factorise,
    relative_jitter,
    whiten,
)
from gpflow_dwp.shapes import sizes

__all__ = [
    "condition_features",
    "expect_features",
    "grouped",
    "grouped_outer",
    "moments_of_each",
    "moments_of_groups",
    "squares",
]


def condition_features(
    draw: GramDraw,
    blocks: TargetBlocks,
    noise: TargetNoise,
    *,
    df: int,
    jitter: float,
) -> TargetBlocks:
    """Draw the features of targets given those of the inducing points, and multiply them out.

    Each of ν columns of features is Gaussian with covariance K/ν. The draw has R <= ν of them; the
    rest are zero at the inducing points, and noise alone at the targets.

    :param draw: The inducing points' features F_i = ``draw.features``, [S, M, R].
    :param blocks: The blocks K_it and K_tt.
    :param noise: The targets' random numbers.
    :param df: Degrees of freedom, ν.
    :param jitter: Relative jitter of the targets' covariance, where it is factorised.
    """
    dtype = blocks.it.dtype
    numbers = tf.cast(noise.normal(df), dtype)
    if blocks.are_single:
        mean, variance = moments_of_each(draw, blocks, noise.gradient_dtype)
        deviation = tf.sqrt(variance / df)[..., None] * numbers
    else:
        whitened_root, _ = whiten(draw.below, draw.features)
        mean, tril = moments_of_groups(draw, blocks, whitened_root, jitter)
        correlated = tf.matmul(tril, grouped(numbers, blocks.tt))
        deviation = tf.reshape(correlated, sizes(numbers)) / np.sqrt(df)

    rank = draw.features.shape[-1]
    features = mean + (deviation if df == rank else deviation[..., :rank])
    # Inner products between targets, to which features that are zero elsewhere add theirs.
    every = features if df == rank else tf.concat([features, deviation[..., rank:]], axis=-1)
    tt = squares(every) if blocks.are_single else grouped_outer(every, blocks.tt)
    return TargetBlocks(tf.matmul(draw.features, features, transpose_b=True), tt, features)


def moments_of_each(
    draw: GramDraw, blocks: TargetBlocks, gradient_dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean of single targets' features, [S, N, R], and variance that K_ii leaves, [S, N]."""
    mean, explained = conditional_moments(
        draw.below, blocks.it, draw.features, gradient_dtype=gradient_dtype
    )
    # Cancellation may leave a rounding error, where the square root has no derivative.
    floor = np.finfo(blocks.it.dtype.as_numpy_dtype).eps * blocks.diagonal
    return mean, tf.maximum(blocks.diagonal - explained, floor)


def moments_of_groups(
    draw: GramDraw, blocks: TargetBlocks, whitened_root: tf.Tensor, jitter: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean of features, [S, N, R], and the root of the covariance that K_ii leaves, [S, G, K, K].

    :param whitened_root: L⁻¹ F_i, where K_ii = L Lᵀ, [S, M, R].
    """
    projected, _ = whiten(draw.below, blocks.it)
    mean = tf.matmul(projected, whitened_root, transpose_a=True)
    remainder = blocks.tt - grouped_outer(tf.linalg.matrix_transpose(projected), blocks.tt)
    factorised = factorise(
        remainder,
        relative_jitter(blocks.tt, jitter) + tf.zeros_like(remainder[..., 0, 0]),
        name="a layer's covariance of the targets given the inducing points",
    )
    return mean, cholesky(factorised)


def expect_features(draw: GramDraw, blocks: TargetBlocks) -> TargetBlocks:
    """What :func:`condition_features` gives without noise, for M (M + N) R a draw instead of M² N.

    :param draw: The inducing points' features F_i = ``draw.features``, [S, M, R].
    :param blocks: The blocks K_it and K_tt.
    """
    features = conditional_mean(draw.below, blocks.it, draw.features)
    it = tf.matmul(draw.features, features, transpose_b=True)
    return TargetBlocks(it, squares(features), features)


def grouped(rows: tf.Tensor, blocks: tf.Tensor) -> tf.Tensor:
    """[S, N, P] as [S, G, K, P] where the blocks are [S, G, K, K]."""
    (S, _, P), (_, G, K, _) = sizes(rows), sizes(blocks)
    return tf.reshape(rows, [S, G, K, P])


def grouped_outer(rows: tf.Tensor, blocks: tf.Tensor) -> tf.Tensor:
    """Inner products of rows [S, N, P] within groups, [S, G, K, K] as the blocks are."""
    groups = grouped(rows, blocks)
    return tf.matmul(groups, groups, transpose_b=True)


def squares(rows: tf.Tensor) -> tf.Tensor:
    """The same for single targets, [S, N, 1, 1]."""
    # Without keepdims the gradient puts a shape together on a GPU, which the host waits for.
    return tf.expand_dims(tf.reduce_sum(tf.square(rows), axis=-1, keepdims=True), -1)
