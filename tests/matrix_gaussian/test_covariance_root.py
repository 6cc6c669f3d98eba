"""Divergences and square roots of matrix-variate Gaussians, against dense multivariate normals."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.matrix_gaussian.covariance_root import (
    CovarianceFamily,
    CovarianceRoot,
    expected_matrix_normal_kl,
    expected_squares,
)

RNG = np.random.default_rng(3)
FAMILIES = get_args(CovarianceFamily)


def root(family: CovarianceFamily, size: int) -> tf.linalg.LinearOperator:
    made = CovarianceRoot("family", family, size, RNG)
    for parameter in made.trainable_parameters:
        value = RNG.uniform(0.5, 2.0, parameter.shape)
        parameter.assign(np.tril(value) if value.ndim == 2 else value)
    return made.operator()


def test_rank_one_root_is_a_diagonal_matrix_and_a_rank_one_matrix() -> None:
    made = CovarianceRoot("family", "rank_one", 3, RNG)
    made.diagonal.assign([0.5, 1.0, 2.0])
    made.direction.assign([0.3, -1.2, 0.7])
    dense = np.diag(made.diagonal) + np.outer(made.direction, made.direction)
    np.testing.assert_allclose(made.operator().to_dense(), dense)


@pytest.mark.parametrize(("rows", "columns"), [*itertools.product(FAMILIES, FAMILIES)])
def test_divergence_is_that_of_the_vectorised_matrix(rows: Any, columns: Any) -> None:
    loc, tau, size = RNG.normal(size=(4, 3)), 1.7, 12
    row_root, column_root = root(rows, 4), root(columns, 3)
    U, V = (R @ R.T for R in (row_root.to_dense().numpy(), column_root.to_dense().numpy()))
    covariance, mean = np.kron(V, U), loc.T.reshape(-1)  # of vec(W), which stacks columns
    spread = tau * (np.trace(covariance) + mean @ mean)
    expected = 0.5 * (spread - size - size * np.log(tau) - np.linalg.slogdet(covariance)[1])
    squares = expected_squares(tf.constant(loc), row_root, column_root)
    prior = {"precision": tau, "log_precision": np.log(tau)}
    kl = expected_matrix_normal_kl(squares, row_root, column_root, **prior)
    np.testing.assert_allclose(kl, expected, rtol=1e-10)
