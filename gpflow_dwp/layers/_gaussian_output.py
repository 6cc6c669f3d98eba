"""What output layers with a Gaussian posterior at the inducing points share."""

from __future__ import annotations

import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers._features import grouped
from gpflow_dwp.layers.base import GaussianPosterior
from gpflow_dwp.linalg import projected_moments, rooted_moments

__all__ = ["mixed_moments", "moments_at_targets"]


def moments_at_targets(
    draw: GaussianPosterior, blocks: TargetBlocks
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and covariance at the targets: see :meth:`OutputLayer.condition`."""
    if not blocks.are_single:
        mean = tf.matmul(blocks.it, draw.weights, transpose_a=True)
        if draw.inverse_root is None:
            left, right = blocks.it, tf.matmul(draw.inverse, blocks.it)
        else:
            left = right = tf.matmul(draw.inverse_root, blocks.it)
        left, right = (
            grouped(tf.linalg.matrix_transpose(part), blocks.tt) for part in (left, right)
        )
        return mean, blocks.tt - tf.matmul(left, right, transpose_b=True)
    if draw.inverse_root is None:
        mean, explained = projected_moments(draw.inverse, draw.weights, blocks.it)
    else:
        mean, explained = rooted_moments(draw.inverse_root, draw.weights, blocks.it)
    variance = blocks.diagonal - explained
    # Cancellation may leave a rounding error below zero.
    return mean, tf.maximum(variance, tf.zeros([], variance.dtype))[..., None, None]


def mixed_moments(
    mixing: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Moments of g W, for independent functions g that share a variance.

    :param mixing: Weights of the functions in the outputs, W, [G, Q].
    :param mean: Of g, [S, N, G].
    :param variance: Covariance of every g within groups, [S, G', K, K].
    :return: [S, N, Q], and [S, Q, G', K, K].
    """
    scales = tf.reduce_sum(tf.square(mixing), axis=0)
    return tf.matmul(mean, mixing), scales[:, None, None, None] * variance[:, None]
