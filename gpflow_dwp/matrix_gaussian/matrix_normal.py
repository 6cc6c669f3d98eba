"""What variational inference needs of matrix-variate Gaussians beyond TFP's distribution."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes

__all__ = ["expected_matrix_normal_kl", "rank_one_root"]


@check_shapes("diagonal: [D]", "direction: [D]")
def rank_one_root(diagonal: tf.Tensor, direction: tf.Tensor) -> tf.linalg.LinearOperator:
    """A square root of a covariance with 2 D parameters: C^½ = diag(d) + u uᵀ.

    Louizos and Welling (2016), footnote 1. The root is symmetric positive definite, so C = (C^½)²
    is a covariance; its determinant and inverse cost O(D), by the determinant lemma and Woodbury.

    :param diagonal: Positive diagonal, d, [D].
    :param direction: Vector of the rank-one part, u, [D].
    :return: The operator, [D, D].
    """
    return tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(diagonal, is_positive_definite=True),
        direction[:, None],
        is_diag_update_positive=True,
        is_self_adjoint=True,
        is_positive_definite=True,
        is_square=True,
    )


def expected_matrix_normal_kl(
    loc: tf.Tensor,
    row_root: tf.linalg.LinearOperator,
    column_root: tf.linalg.LinearOperator,
    *,
    precision: float | tf.Tensor = 1.0,
    log_precision: float | tf.Tensor = 0.0,
) -> tf.Tensor:
    """Return E KL(MN(M, U, V) || MN(0, I / τ, I)) for a random scalar precision τ.

    With U = R Rᵀ of r rows, V = C Cᵀ of c columns (equation 15 of Louizos and Welling, 2016, with
    scaled identities in the prior; equation 4 where U, V are diagonal and τ = 1):

    ½ (E[τ] (‖R‖² ‖C‖² + ‖M‖²) - r c - 2 c log det R - 2 r log det C - r c E[log τ])

    For a prior MN(0, I/τ_r, I/τ_c) with independent precisions, τ = τ_r τ_c: E[τ] = E[τ_r] E[τ_c]
    and E[log τ] = E[log τ_r] + E[log τ_c]. No dense covariance is made. TFP registers the general
    divergence between two ``MatrixNormalLinearOperator``.

    :param loc: Mean of the matrix, M, [r, c].
    :param row_root: Root of the rows' covariance, R, [r, r].
    :param column_root: Root of the columns' covariance, C, [c, c].
    :param precision: Mean of the precision, E[τ], [].
    :param log_precision: Mean of the precision's logarithm, E[log τ], [].
    :return: Nats, [].
    """
    num_rows = tf.cast(tf.shape(loc)[0], loc.dtype)
    num_columns = tf.cast(tf.shape(loc)[1], loc.dtype)
    spread = _squared_norm(row_root) * _squared_norm(column_root)
    return 0.5 * (
        precision * (spread + tf.reduce_sum(tf.square(loc)))
        - num_rows * num_columns * (1.0 + log_precision)
        - 2.0 * num_columns * row_root.log_abs_determinant()
        - 2.0 * num_rows * column_root.log_abs_determinant()
    )


def _squared_norm(root: tf.linalg.LinearOperator) -> tf.Tensor:
    """|R|², the trace of R Rᵀ."""
    if isinstance(root, tf.linalg.LinearOperatorDiag):
        return tf.reduce_sum(tf.square(root.diag))
    if isinstance(root, tf.linalg.LinearOperatorLowRankUpdate):
        diagonal, u = root.base_operator.diag_part(), root.u[:, 0]
        # |diag(d) + u uᵀ|² = Σ d² + 2 Σ d u² + (Σ u²)²
        squares = tf.square(u)
        return (
            tf.reduce_sum(tf.square(diagonal))
            + 2.0 * tf.reduce_sum(diagonal * squares)
            + tf.square(tf.reduce_sum(squares))
        )
    return tf.reduce_sum(tf.square(root.to_dense()))
