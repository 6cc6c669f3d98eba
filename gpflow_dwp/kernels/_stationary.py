"""Isotropic stationary kernels: functions of r² = (G_ii + G_jj - 2 G_ij) / ℓ²."""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import IsotropicStationary, SquaredExponential

from gpflow_dwp.kernels._dispatch import Coinciding, Entries, gram_kernel

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
    return tf.exp(tf.matmul(left, right))


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
