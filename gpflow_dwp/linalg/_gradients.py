"""What the gradients of several functions need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

__all__ = [
    "Gradient",
    "Tensors",
    "half_lower",
    "sum_to",
    "unwhiten_both_sides",
    "whiten_both_sides",
]

Tensors = tuple[tf.Tensor | None, ...]
"""One tensor for each argument or result; None for the gradient of a constant."""

Gradient = Callable[..., Tensors]
"""From the gradients of a function's results to those of its arguments."""


def half_lower(matrix: tf.Tensor) -> tf.Tensor:
    """Take the lower triangle, with half its diagonal: low(X)."""
    size = matrix.shape[-1]
    if size is not None:
        return matrix * (np.tri(size) - 0.5 * np.eye(size)).astype(matrix.dtype.as_numpy_dtype)
    ones = tf.ones(tf.shape(matrix)[-2:], matrix.dtype)
    return matrix * (tf.linalg.band_part(ones, -1, 0) - 0.5 * tf.linalg.band_part(ones, 0, 0))


def unwhiten_both_sides(tril: tf.Tensor, inner: tf.Tensor) -> tf.Tensor:
    """L⁻ᵀ Xᵀ L⁻¹, which as the gradient of a symmetric matrix is as good as L⁻ᵀ X L⁻¹."""
    left = tf.linalg.triangular_solve(tril, inner, adjoint=True)
    return tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(left), adjoint=True)


def whiten_both_sides(tril: tf.Tensor, inner: tf.Tensor) -> tf.Tensor:
    """L⁻¹ (X + Xᵀ) L⁻ᵀ / 2."""
    symmetric = 0.5 * (inner + tf.linalg.matrix_transpose(inner))
    left = tf.linalg.triangular_solve(tril, symmetric)
    return tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(left))


def sum_to(gradient: tf.Tensor, primal: tf.Tensor) -> tf.Tensor:
    """Undo the broadcasting of leading axes."""
    if gradient.shape == primal.shape and primal.shape.is_fully_defined():
        return gradient
    target = tf.shape(primal)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=target, s1=tf.shape(gradient))
    return tf.reshape(tf.reduce_sum(gradient, axes), target)
