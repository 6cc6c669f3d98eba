"""Targets of layers whose Gram matrix is F Fᵀ with Gaussian F: what both kinds share."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers.base import GramDraw
from gpflow_dwp.linalg import (
    cholesky,
    conditional_mean,
    conditional_moments,
    factorise,
    relative_jitter,
    whiten,
)

__all__ = ["condition_features", "expect_features", "grouped", "grouped_outer"]


def condition_features(
    draw: GramDraw,
    covariance: TargetBlocks,
    noise: tf.Tensor,
    *,
    jitter: float,
    full_cov: bool,
) -> TargetBlocks:
    """Draw the features of targets given those of the inducing points, and multiply them out.

    Each of ν columns of features is Gaussian with covariance K/ν. The draw has R <= ν of them; the
    rest are zero at the inducing points, and noise alone at the targets.

    :param draw: The inducing points' features F_i = ``draw.root``, [S, M, R].
    :param covariance: The blocks K_it and K_tt; the latter [S, N/K, K, K] where groups of K
        successive targets are drawn jointly.
    :param noise: Standard normal numbers, [S, N, ν]; of the type of numbers in which gradients of
        single targets are worked out. All else is of the type of the blocks.
    :param jitter: Relative jitter of the targets' covariance, where it is factorised.
    :param full_cov: Whether targets are drawn jointly.
    """
    df, dtype = noise.shape[-1], covariance.it.dtype
    gradient_dtype, noise = noise.dtype, tf.cast(noise, dtype)
    if full_cov:
        projected, _ = whiten(draw.covariance, covariance.it)
        whitened_root, _ = whiten(draw.covariance, draw.root)
        mean = tf.matmul(projected, whitened_root, transpose_a=True)
        explained = grouped_outer(tf.linalg.matrix_transpose(projected), covariance.tt)
        remainder = covariance.tt - explained
        factorised = factorise(
            remainder,
            relative_jitter(covariance.tt, jitter) + tf.zeros_like(remainder[..., 0, 0]),
            name="a layer's covariance of the targets given the inducing points",
        )
        correlated = tf.matmul(cholesky(factorised), grouped(noise, covariance.tt))
        deviation = tf.reshape(correlated, tf.shape(noise)) / np.sqrt(df)
    else:
        mean, explained = conditional_moments(
            draw.covariance, covariance.it, draw.root, gradient_dtype=gradient_dtype
        )
        # Cancellation may leave a rounding error, where the square root has no derivative.
        floor = np.finfo(dtype.as_numpy_dtype).eps * covariance.tt
        variance = tf.maximum(covariance.tt - explained, floor)
        deviation = tf.sqrt(variance / df)[..., None] * noise

    rank = draw.root.shape[-1]
    root = mean + (deviation if df == rank else deviation[..., :rank])
    # Inner products between targets, to which features that are zero elsewhere add theirs.
    every = root if df == rank else tf.concat([root, deviation[..., rank:]], axis=-1)
    tt = (
        grouped_outer(every, covariance.tt)
        if full_cov
        else tf.reduce_sum(tf.square(every), axis=-1)
    )
    return TargetBlocks(tf.matmul(draw.root, root, transpose_b=True), tt, root)


def expect_features(draw: GramDraw, covariance: TargetBlocks) -> TargetBlocks:
    """What :func:`condition_features` gives without noise, for M (M + N) R a draw instead of M² N.

    :param draw: The inducing points' features F_i = ``draw.root``, [S, M, R].
    :param covariance: The blocks K_it and K_tt.
    """
    root = conditional_mean(draw.covariance, covariance.it, draw.root)
    it = tf.matmul(draw.root, root, transpose_b=True)
    return TargetBlocks(it, tf.reduce_sum(tf.square(root), axis=-1), root)


def grouped(rows: tf.Tensor, blocks: tf.Tensor) -> tf.Tensor:
    """[S, N, P] as [S, N/K, K, P] where the blocks are [S, N/K, K, K]."""
    if blocks.shape.rank == 3:
        return rows
    shape = tf.shape(rows)
    size = tf.shape(blocks)[-1]
    return tf.reshape(rows, [shape[0], shape[1] // size, size, shape[2]])


def grouped_outer(rows: tf.Tensor, blocks: tf.Tensor) -> tf.Tensor:
    """Inner products of rows [S, N, P]: of all, or within groups as the blocks are."""
    groups = grouped(rows, blocks)
    return tf.matmul(groups, groups, transpose_b=True)
