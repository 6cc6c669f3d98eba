"""What output layers with a Gaussian posterior at the inducing points share."""

from __future__ import annotations

import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers.base import GaussianDraw
from gpflow_dwp.linalg import projected_moments, rooted_moments

__all__ = ["moments_at_targets"]


def moments_at_targets(
    draw: GaussianDraw, covariance: TargetBlocks, *, full_cov: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance at the targets: see :meth:`OutputLayer.condition`."""
    if full_cov:
        mean = tf.matmul(covariance.it, draw.weights, transpose_a=True)
        if draw.root is None:
            left, right = covariance.it, tf.matmul(draw.inverse, covariance.it)
        else:
            left = right = tf.matmul(draw.root, covariance.it)
        return mean, covariance.tt - tf.matmul(left, right, transpose_a=True)
    if draw.root is None:
        mean, explained = projected_moments(draw.inverse, draw.weights, covariance.it)
    else:
        mean, explained = rooted_moments(draw.root, draw.weights, covariance.it)
    variance = covariance.tt - explained
    # Cancellation may leave a rounding error below zero.
    return mean, tf.maximum(variance, tf.zeros([], variance.dtype))
