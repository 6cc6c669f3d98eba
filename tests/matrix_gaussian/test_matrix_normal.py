"""Divergences and square roots of matrix-variate Gaussians, against dense multivariate normals."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.matrix_gaussian import expected_matrix_normal_kl, rank_one_root

RNG = np.random.default_rng(3)
ROWS, COLUMNS = 4, 3


def root(family: str, size: int) -> tf.linalg.LinearOperator:
    rng = np.random.default_rng(size)
    diagonal = tf.constant(rng.uniform(0.5, 2.0, size))
    if family == "diagonal":
        return tf.linalg.LinearOperatorDiag(diagonal)
    if family == "rank_one":
        return rank_one_root(diagonal, tf.constant(rng.normal(size=size)))
    tril = np.tril(rng.normal(size=(size, size)), -1) + np.diag(diagonal)
    return tf.linalg.LinearOperatorLowerTriangular(tf.constant(tril))


def test_rank_one_root_is_a_diagonal_matrix_and_a_rank_one_matrix() -> None:
    diagonal, direction = np.array([0.5, 1.0, 2.0]), np.array([0.3, -1.2, 0.7])
    operator = rank_one_root(tf.constant(diagonal), tf.constant(direction))

    dense = np.diag(diagonal) + np.outer(direction, direction)
    np.testing.assert_allclose(operator.to_dense(), dense)
    np.testing.assert_allclose(operator.log_abs_determinant(), np.linalg.slogdet(dense)[1])


@pytest.mark.parametrize("rows", ["diagonal", "rank_one", "full"])
@pytest.mark.parametrize("columns", ["diagonal", "rank_one", "full"])
def test_divergence_is_that_of_the_vectorised_matrix(rows: str, columns: str) -> None:
    loc, tau = RNG.normal(size=(ROWS, COLUMNS)), 1.7
    row_root, column_root = root(rows, ROWS), root(columns, COLUMNS)
    U = row_root.matmul(row_root.to_dense(), adjoint_arg=True).numpy()
    V = column_root.matmul(column_root.to_dense(), adjoint_arg=True).numpy()
    covariance = np.kron(V, U)  # of vec(W), which stacks columns
    mean = loc.T.reshape(-1)
    size = ROWS * COLUMNS
    expected = 0.5 * (
        tau * (np.trace(covariance) + mean @ mean)
        - size
        - size * np.log(tau)
        - np.linalg.slogdet(covariance)[1]
    )

    kl = expected_matrix_normal_kl(
        tf.constant(loc), row_root, column_root, precision=tau, log_precision=np.log(tau)
    )

    np.testing.assert_allclose(kl, expected, rtol=1e-10)
