"""Isotropic stationary kernels: functions of r² = (G_ii + G_jj - 2 G_ij) / ℓ²."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from gpflow.kernels import IsotropicStationary, SquaredExponential

from gpflow_dwp.kernels._dispatch import Coinciding, Entries, gram_kernel
from gpflow_dwp.linalg import sum_to

__all__ = ["isotropic_stationary", "squared_exponential"]


@gram_kernel.register(IsotropicStationary, Entries)
def isotropic_stationary(kernel: IsotropicStationary, entries: Entries) -> tf.Tensor:
    """Any kernel that defines GPflow's element-wise ``K_r2`` or ``K_r``."""
    if entries.coinciding is Coinciding.ALL:
        return tf.convert_to_tensor(kernel.variance)
    r2 = _scaled_square_distance(kernel, entries)
    if type(kernel).K_r2 is IsotropicStationary.K_r2:
        return kernel.K_r2(r2)  # GPflow clips r² there, before it takes the root
    return kernel.K_r2(tf.maximum(r2, 0.0))


@gram_kernel.register(SquaredExponential, Entries)
def squared_exponential(kernel: SquaredExponential, entries: Entries) -> tf.Tensor:
    """exp(log σ² + (G_ij - G_ii/2 - G_jj/2) / ℓ²): the common kernel, in fewer passes.

    Rounding below zero distance does no harm here, so nothing is clipped, and diagonals are left.
    Where features are known, the exponent is a product of features with two columns more, so that
    the exponential is the only pass over the matrix.
    """
    if type(kernel).K_r2 is not SquaredExponential.K_r2:
        return isotropic_stationary(kernel, entries)
    if entries.coinciding is Coinciding.ALL:
        return tf.convert_to_tensor(kernel.variance)
    if entries.features is not None and entries.gradient_dtype is not None:
        entries = _centred(entries, entries.features)
    precision = 1.0 / tf.square(kernel.lengthscales)
    row = tf.math.log(kernel.variance) - 0.5 * precision * entries.row_norms
    column = -0.5 * precision * entries.column_norms
    if entries.features is None:
        return tf.exp(precision * entries.product + row + column)
    of_rows, of_columns = entries.features
    # Long rows make for faster products than long columns, also in the gradient.
    of_columns = tf.linalg.matrix_transpose(of_columns)
    left = tf.concat([precision * of_rows, row, tf.ones_like(row)], axis=-1)
    right = tf.concat([of_columns, tf.ones_like(column), column], axis=-2)
    return _exp_of_product(left, right, entries.gradient_dtype)


def _centred(entries: Entries, features: tuple[tf.Tensor, tf.Tensor]) -> Entries:
    """The same points about the mean of the rows' features; not their inner products.

    Gradients are sums of products in which what all points have in common cancels, but for its
    rounding error.
    """
    rows, columns = features
    centre = tf.stop_gradient(tf.reduce_mean(rows, axis=-2, keepdims=True))

    def change_of_norms(points: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(centre * (centre - 2.0 * points), axis=-1, keepdims=True)

    change_of_columns = tf.linalg.matrix_transpose(change_of_norms(columns))
    return entries._replace(
        row_norms=entries.row_norms + change_of_norms(rows),
        column_norms=entries.column_norms + change_of_columns,
        features=(rows - centre, columns - centre),
    )


def _exp_of_product(
    left: tf.Tensor, right: tf.Tensor, gradient_dtype: tf.DType | None
) -> tf.Tensor:
    """exp(left right), [..., M, N], with its gradient worked out in another type of numbers."""
    if gradient_dtype is None:
        return tf.exp(tf.matmul(left, right))

    @tf.custom_gradient
    def differentiable(
        left: tf.Tensor, right: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        values = tf.exp(tf.matmul(left, right))
        kept = tf.cast(values, gradient_dtype)

        def gradient(values_bar: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            product_bar = kept * tf.cast(values_bar, kept.dtype)
            left_bar = tf.matmul(product_bar, tf.cast(right, kept.dtype), transpose_b=True)
            right_bar = tf.matmul(tf.cast(left, kept.dtype), product_bar, transpose_a=True)
            return (
                sum_to(tf.cast(left_bar, left.dtype), left),
                sum_to(tf.cast(right_bar, right.dtype), right),
            )

        return values, gradient

    return differentiable(left, right)


def _scaled_square_distance(kernel: IsotropicStationary, entries: Entries) -> tf.Tensor:
    """r², not clipped. The scale meets the norms before they are spread over the matrix."""
    precision = 1.0 / tf.square(kernel.lengthscales)
    norms = precision * entries.row_norms + precision * entries.column_norms
    r2 = norms - 2.0 * precision * entries.product
    if entries.coinciding is Coinciding.DIAGONAL:
        # Zero in exact arithmetic; set, so that the root of a rounding error has no gradient.
        r2 = _with_diagonal(r2, tf.zeros([], r2.dtype))
    return r2


def _with_diagonal(matrix: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    return tf.linalg.set_diag(matrix, tf.fill(tf.shape(matrix)[:-1], tf.convert_to_tensor(value)))
