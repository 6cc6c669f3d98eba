"""Hidden layers whose Gram matrix is F Fᵀ with Gaussian features F."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers.base import GramDraw, GramLayer
from gpflow_dwp.linalg import (
    cholesky,
    conditional_mean,
    conditional_moments,
    factorise,
    relative_jitter,
    whiten,
)
from gpflow_dwp.random import TargetNoise

__all__ = ["FeatureLayer", "joint_moments", "moments_of_each"]


class FeatureLayer(GramLayer):
    """A hidden layer of ν features, whose columns are a priori Gaussian with covariance s² K,
    with s as :meth:`scales` has it.

    A draw at the inducing points has R <= ν columns; the rest are zero there, and noise alone at
    the targets.
    """

    num_features: int

    @inherit_check_shapes
    def condition(self, draw: GramDraw, blocks: TargetBlocks, noise: TargetNoise) -> TargetBlocks:
        df, rank = self.num_features, draw.features.shape[-1]
        numbers = tf.cast(noise.normal(df), blocks.it.dtype)
        scales = self.scales(blocks.it.dtype)
        if blocks.are_single:
            mean, variance = moments_of_each(draw, blocks, noise.gradient_dtype)
            deviation = scales * tf.expand_dims(tf.sqrt(variance), -1) * numbers
        else:
            whitened_root, _ = whiten(draw.below, draw.features)
            mean, tril = joint_moments(draw, blocks, whitened_root, self.jitter)
            deviation = scales * tf.matmul(tril, numbers)
        features = mean + (deviation if df == rank else deviation[..., :rank])
        # Inner products between targets, to which features that are zero elsewhere add theirs.
        every = features if df == rank else tf.concat([features, deviation[..., rank:]], axis=-1)
        it = tf.matmul(draw.features, features, transpose_b=True)
        return TargetBlocks(it, blocks.inner_products(every), features)

    @inherit_check_shapes
    def expect(self, draw: GramDraw, blocks: TargetBlocks) -> TargetBlocks:
        # As without noise, for M (M + N) R a draw instead of M² N.
        features = conditional_mean(draw.below, blocks.it, draw.features)
        it = tf.matmul(draw.features, features, transpose_b=True)
        return TargetBlocks(it, blocks.inner_products(features), features)


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


def joint_moments(
    draw: GramDraw, blocks: TargetBlocks, whitened_root: tf.Tensor, jitter: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean of features, [S, N, R], and the root of the covariance that K_ii leaves, [S, N, N].

    :param whitened_root: L⁻¹ F_i, where K_ii = L Lᵀ, [S, M, R].
    """
    projected, _ = whiten(draw.below, blocks.it)
    mean = tf.matmul(projected, whitened_root, transpose_a=True)
    remainder = blocks.tt - blocks.inner_products(tf.linalg.matrix_transpose(projected))
    factorised = factorise(
        remainder,
        tf.broadcast_to(relative_jitter(blocks.tt, jitter), tf.shape(remainder)[:-2]),
        name="a layer's covariance of the targets given the inducing points",
    )
    return mean, cholesky(factorised)
