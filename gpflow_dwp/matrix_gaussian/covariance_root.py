"""Square roots of a layer's row and column covariances, with more or fewer parameters."""

from __future__ import annotations

from typing import Literal, get_args

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.utilities import positive

from gpflow_dwp.validation import check_choice

__all__ = [
    "CovarianceFamily",
    "CovarianceRoot",
    "expected_matrix_normal_kl",
    "expected_squares",
    "times_root",
]

CovarianceFamily = Literal["diagonal", "rank_one"]
"""How many parameters the square root of a row or column covariance has."""


class CovarianceRoot(gpflow.Module):
    """The square root of a covariance, that starts at the identity.

    "rank_one" has 2 D parameters, C^½ = diag(d) + u uᵀ with positive d (Louizos and Welling, 2016,
    footnote 1). It is symmetric positive definite, so C = (C^½)² is a covariance; its determinant
    and inverse cost O(D), by the determinant lemma and Woodbury.

    :param name: The argument that the family comes from.
    :param family: "diagonal" or "rank_one".
    :param size: Number of rows and columns, D.
    :param rng: Draws the start of u.
    :raises ValueError: If the family is none of these.
    """

    def __init__(
        self, name: str, family: CovarianceFamily, size: int, rng: np.random.Generator
    ) -> None:
        check_choice(get_args(CovarianceFamily), **{name: family})
        super().__init__(name="CovarianceRoot")
        self.family = family
        transform = positive(base="exp", lower=0.0)
        self.diagonal = Parameter(np.ones(size), transform=transform)
        if family == "rank_one":
            # At zero the gradient of u uᵀ is zero.
            self.direction = Parameter(rng.normal(scale=0.01, size=size))

    def operator(self) -> tf.linalg.LinearOperator:
        """The present root."""
        diagonal = tf.linalg.LinearOperatorDiag(
            tf.convert_to_tensor(self.diagonal), is_positive_definite=True
        )
        if self.family == "diagonal":
            return diagonal
        return tf.linalg.LinearOperatorLowRankUpdate(
            diagonal,
            tf.convert_to_tensor(self.direction)[:, None],
            is_diag_update_positive=True,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
        )


def times_root(A: tf.Tensor, root: tf.linalg.LinearOperator) -> tf.Tensor:
    """A R of a symmetric root R: rows with the inner products A R² Aᵀ, or with the covariance R² of
    columns where A is noise."""
    if isinstance(root, tf.linalg.LinearOperatorDiag):
        return A * root.diag
    return tf.linalg.matrix_transpose(root.matmul(tf.linalg.matrix_transpose(A)))


def expected_squares(
    loc: tf.Tensor | None, row_root: tf.linalg.LinearOperator, column_root: tf.linalg.LinearOperator
) -> tf.Tensor:
    """E ‖W‖² = ‖R‖² ‖C‖² + ‖M‖², [], of W ~ MN(M, R Rᵀ, C Cᵀ), whose mean is 0 for None."""
    spread = _squared_norm(row_root) * _squared_norm(column_root)
    return spread if loc is None else spread + tf.reduce_sum(tf.square(loc))


def expected_matrix_normal_kl(
    squares: tf.Tensor,
    row_root: tf.linalg.LinearOperator,
    column_root: tf.linalg.LinearOperator,
    *,
    precision: float | tf.Tensor = 1.0,
    log_precision: float | tf.Tensor = 0.0,
) -> tf.Tensor:
    """Return E KL(MN(M, U, V) || MN(0, I / τ, I)) for a random scalar precision τ.

    With U = R Rᵀ of r rows, V = C Cᵀ of c columns (equation 15 of Louizos and Welling, 2016, with
    scaled identities in the prior; equation 4 where U, V are diagonal and τ = 1):

    ½ (E[τ] E ‖W‖² - r c - 2 c log det R - 2 r log det C - r c E[log τ])

    For a prior MN(0, I/τ_r, I/τ_c) with independent precisions, τ = τ_r τ_c: E[τ] = E[τ_r] E[τ_c]
    and E[log τ] = E[log τ_r] + E[log τ_c]. No dense covariance is made.

    :param squares: E ‖W‖², of :func:`expected_squares`, [].
    :param row_root: Root of the rows' covariance, R, [r, r].
    :param column_root: Root of the columns' covariance, C, [c, c].
    :param precision: Mean of the precision, E[τ], [].
    :param log_precision: Mean of the precision's logarithm, E[log τ], [].
    :return: Nats, [].
    """
    num_rows, num_columns = int(row_root.shape[-1]), int(column_root.shape[-1])
    return 0.5 * (
        precision * squares
        - num_rows * num_columns * (1.0 + log_precision)
        - 2.0 * num_columns * row_root.log_abs_determinant()
        - 2.0 * num_rows * column_root.log_abs_determinant()
    )


def _squared_norm(root: tf.linalg.LinearOperator) -> tf.Tensor:
    """‖R‖², the trace of R Rᵀ."""
    if isinstance(root, tf.linalg.LinearOperatorDiag):
        return tf.reduce_sum(tf.square(root.diag))
    # ‖diag(d) + u uᵀ‖² = Σ d² + 2 Σ d u² + (Σ u²)²
    diagonal, squares = root.base_operator.diag_part(), tf.square(root.u[:, 0])
    of_both = 2.0 * tf.reduce_sum(diagonal * squares)
    return tf.reduce_sum(diagonal**2) + of_both + tf.reduce_sum(squares) ** 2
