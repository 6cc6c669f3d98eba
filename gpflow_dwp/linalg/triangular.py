"""Products with, and solves against, the triangular roots of factorised covariances."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.base import sizes
from gpflow_dwp.linalg.factorisation import (
    Factorised,
    Gradient,
    Tensors,
    half_lower,
    sum_to,
    unwhiten_both_sides,
)

__all__ = ["relative_precision", "whiten"]


@check_shapes(
    "factorised.tril: [broadcast batch..., M, M]",
    "columns: [broadcast batch..., M, P]",
    "return[0]: [batch..., M, P]",
)
def whiten(factorised: Factorised, columns: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Return X = L⁻¹ R, and log|K|.

    :math:`\bar R = L^{-T} \bar X` and, with low as for :func:`cholesky` and l the log-determinant,
    :math:`\bar K = L^{-T} (\bar l I - \operatorname{low}(\bar X X^T)) L^{-1}`.

    :param factorised: Covariance and its Cholesky factor, K, [..., M, M].
    :param columns: Right-hand sides, R, [..., M, P].
    :return: L⁻¹ R, [..., M, P], and log|K|, [...].
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor, columns: tf.Tensor
    ) -> tuple[Tensors, Gradient]:
        whitened = tf.linalg.triangular_solve(tril, columns)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tril)), axis=-1)

        def gradient(whitened_bar: tf.Tensor, log_det_bar: tf.Tensor) -> Tensors:
            columns_bar = tf.linalg.triangular_solve(tril, whitened_bar, adjoint=True)
            outer = sum_to(tf.matmul(whitened_bar, whitened, transpose_b=True), tril)
            identity = tf.eye(sizes(tril)[-1], dtype=tril.dtype)
            inner = log_det_bar[..., None, None] * identity - half_lower(outer)
            return unwhiten_both_sides(tril, inner), None, sum_to(columns_bar, columns)

        return (whitened, log_det), gradient

    return differentiable(*factorised, columns)


@check_shapes(
    "below.tril: [batch..., M, M]",
    "scale.tril: [batch..., M, M]",
    "columns: [broadcast draws..., M, P]",
    "return[0]: [batch..., M, M]",
    "return[1]: [draws..., M, P]",
    "return[2]: [batch...]",
)
def relative_precision(
    below: Factorised, scale: Factorised, columns: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    r"""Compare the scale Σ = L_A L_Aᵀ with K = L Lᵀ: Q = L_Aᵀ K⁻¹ L_A, L_A X and log|L_A| - log|L|.

    One function for the three, because they share their gradient. With C = L⁻¹ L_A, so that
    Q = CᵀC, with l the difference of the log-determinants, Y = L_A X, and low as for
    :func:`cholesky`,

    .. math:: \bar\Sigma &= L_A^{-T} \operatorname{low}\bigl(Q (\bar Q + \bar Q^T)
                            + L_A^T \bar Y X^T + \bar l I\bigr) L_A^{-1}, \\
              \bar K &= -\tfrac12 L^{-T} \bigl(C (\bar Q + \bar Q^T) C^T
                       + \bar l I\bigr) L^{-1}.

    :param below: Covariance of the prior, K, [..., M, M].
    :param scale: Scale of the posterior, Σ, [..., M, M].
    :param columns: Columns to multiply, X, [..., M, P]; may have draws where K and Σ have a leading
        axis of 1.
    """

    @tf.custom_gradient
    def differentiable(
        below: tf.Tensor,
        below_tril: tf.Tensor,
        scale: tf.Tensor,
        scale_tril: tf.Tensor,
        columns: tf.Tensor,
    ) -> tuple[Tensors, Gradient]:
        ratio = tf.linalg.triangular_solve(below_tril, scale_tril)
        precision = tf.matmul(ratio, ratio, transpose_a=True)
        log_det_ratio = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(ratio)), axis=-1)

        def gradient(
            precision_bar: tf.Tensor, colored_bar: tf.Tensor, log_det_bar: tf.Tensor
        ) -> Tensors:
            columns_bar = tf.matmul(scale_tril, colored_bar, transpose_a=True)
            through_columns = sum_to(tf.matmul(columns_bar, columns, transpose_b=True), scale_tril)
            twice = precision_bar + tf.linalg.matrix_transpose(precision_bar)
            log_det_part = log_det_bar[..., None, None] * tf.eye(
                sizes(ratio)[-1], dtype=ratio.dtype
            )
            of_scale = tf.matmul(precision, twice) + through_columns + log_det_part
            of_below = tf.matmul(tf.matmul(ratio, twice), ratio, transpose_b=True) + log_det_part
            return (
                unwhiten_both_sides(below_tril, -0.5 * of_below),
                None,
                unwhiten_both_sides(scale_tril, half_lower(of_scale)),
                None,
                sum_to(columns_bar, columns),
            )

        return (precision, tf.matmul(scale_tril, columns), log_det_ratio), gradient

    return differentiable(*below, *scale, columns)
