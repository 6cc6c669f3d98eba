from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp.bijectors import RightTriangularProduct


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_determinants_match_finite_differences(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    matrix = reference.random_tril(rng, 2, rank, rank)
    x = reference.random_trapezoid(rng, 2, size, rank)

    reference.assert_log_determinants(
        RightTriangularProduct(matrix),
        rank,
        *(x, x @ matrix),
        *(reference.trapezoid, reference.trapezoid),
        forward_tolerance=1e-7,
        inverse_tolerance=1e-7,
    )


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_forward_is_the_product_and_inverse_undoes_it(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    matrix = reference.random_tril(rng, 2, 1, rank, rank)
    x = reference.random_trapezoid(rng, 3, size, rank)
    bijector = RightTriangularProduct(matrix)
    # As an array: TFP would find the forward pass of a tensor in its cache.
    y = bijector.forward(x).numpy()
    np.testing.assert_allclose(y, x @ matrix, atol=1e-14)
    recovered = bijector.inverse(y).numpy()
    np.testing.assert_allclose(recovered, np.broadcast_to(x, [2, 3, size, rank]), atol=1e-13)
    assert np.all(recovered[..., ~np.tri(size, rank, dtype=bool)] == 0.0)


def test_entries_above_the_diagonals_are_ignored() -> None:
    rng = np.random.default_rng(1)
    matrix, x = reference.random_tril(rng, 3, 3), reference.random_trapezoid(rng, 4, 3)
    bijector = RightTriangularProduct(matrix + np.triu(np.full([3, 3], np.nan), 1))
    np.testing.assert_allclose(bijector.forward(x + ~np.tri(4, 3, dtype=bool)), x @ matrix)
    np.testing.assert_allclose(bijector.inverse(x @ matrix + ~np.tri(4, 3, dtype=bool)), x)


@pytest.mark.parametrize(
    "matrix",
    [
        np.ones([2, 3]),
        np.ones([3]),
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1.0]),
        [[1.0, 0.0], [np.nan, 1.0]],
    ],
)
def test_bad_matrices_raise(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="column_mixing_tril"):
        RightTriangularProduct(matrix)


@pytest.mark.parametrize("shape", [[4, 2], [2, 3], [3]])
def test_inputs_of_another_shape_raise(shape: list[int]) -> None:
    bijector = RightTriangularProduct(np.eye(3))
    with pytest.raises(ValueError, match="input must have"):
        bijector.forward(np.ones(shape))
    with pytest.raises(ValueError, match="input must have"):
        bijector.inverse(np.ones(shape))


def test_variables_are_read_and_asserted_at_each_use() -> None:
    variable = tf.Variable(np.eye(2))
    bijector = RightTriangularProduct(variable, validate_args=True)
    variable.assign(2.0 * np.eye(2))
    np.testing.assert_array_equal(bijector.forward(np.eye(3, 2)), 2.0 * np.eye(3, 2))
    variable.assign(-np.eye(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="column_mixing_tril"):
        bijector.forward(np.eye(3, 2))
