"""Every bijector of the package: its map, both log-determinants, and what TFP asks of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
import tensorflow_probability as tfp

from gpflow_dwp import bijectors
from gpflow_dwp.bijectors import (
    ColumnScaledTril,
    RightTriangularProduct,
    SingularCongruence,
    TallCholeskyOuterProduct,
    TriangularCongruence,
)
from gpflow_dwp.distributions import ABGeneralisedSingularWishart, GeneralisedBartlett


def outer(factor: np.ndarray) -> np.ndarray:
    return factor @ np.swapaxes(factor, -1, -2)


Mapped = tuple[Any, np.ndarray, np.ndarray, Callable[..., np.ndarray], Callable[..., np.ndarray]]


def mapped(name: str, size: int, df: int) -> Mapped:
    """A bijector, x and y, by NumPy, and what makes each of its free entries."""
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    factor = reference.random_tril(rng, 2, size, rank)
    if name == "ColumnScaledTril":
        x = np.tril(0.7 * rng.normal(size=(2, rank, rank)))
        scales = np.exp(np.diagonal(x, axis1=-2, axis2=-1))[..., None, :]
        y = (np.tril(x, -1) + np.eye(rank)) * scales
        return ColumnScaledTril(), x, y, reference.trapezoid, reference.trapezoid
    if name == "RightTriangularProduct":
        matrix = reference.random_tril(rng, 2, rank, rank)
        bijector = RightTriangularProduct(matrix)
        return bijector, factor, factor @ matrix, reference.trapezoid, reference.trapezoid
    if name == "TallCholeskyOuterProduct":
        bijector = TallCholeskyOuterProduct(rank)
        return bijector, factor, outer(factor), reference.trapezoid, reference.complete
    is_general = name == "SingularCongruence"
    make_matrix = reference.random_invertible if is_general else reference.random_tril
    matrix = make_matrix(rng, 2, size, size)
    bijector = getattr(bijectors, name)(matrix, df)
    return bijector, outer(factor), outer(matrix @ factor), reference.complete, reference.complete


@pytest.mark.parametrize("name", bijectors.__all__)
@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_maps_are_numpys_and_log_determinants_those_of_finite_differences(
    name: str, size: int, df: int
) -> None:
    bijector, x, y, parse_x, parse_y = mapped(name, size, df)
    is_congruence = name.endswith("Congruence")

    # As arrays: TFP would find the other pass of a tensor in its cache.
    forward, inverse = bijector.forward(x).numpy(), bijector.inverse(y).numpy()

    np.testing.assert_allclose(forward, y, atol=1e-13)
    np.testing.assert_allclose(inverse, x, atol=1e-11)
    for found, expected in ((forward, y), (inverse, x)):
        if np.array_equal(expected, np.swapaxes(expected, -1, -2)):
            np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))
    rank, tolerance = min(size, df), 1e-5 if is_congruence else 1e-7
    expected = reference.log_abs_det_jacobian(bijector.forward, x, parse_x, rank)
    found = bijector.forward_log_det_jacobian(x)
    np.testing.assert_allclose(found, expected, tolerance, tolerance)
    step, tolerance = (1e-7, 1e-4) if is_congruence else (1e-5, 1e-6)
    expected = reference.log_abs_det_jacobian(bijector.inverse, y, parse_y, rank, step)
    found = bijector.inverse_log_det_jacobian(y)
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


def test_entries_above_the_diagonals_are_ignored() -> None:
    rng = np.random.default_rng(1)
    matrix, x = reference.random_tril(rng, 3, 3), reference.random_tril(rng, 4, 3)
    bijector = RightTriangularProduct(matrix + np.triu(np.full([3, 3], np.nan), 1))
    np.testing.assert_allclose(bijector.forward(x + ~np.tri(4, 3, dtype=bool)), x @ matrix)
    np.testing.assert_allclose(bijector.inverse(x @ matrix + ~np.tri(4, 3, dtype=bool)), x)
    bijector = TallCholeskyOuterProduct(3)
    np.testing.assert_allclose(bijector.forward(x + ~np.tri(4, 3, dtype=bool)), x @ x.T)
    y = np.where(np.tri(4, 4, dtype=bool) & (np.arange(4) < 3), x @ x.T, np.nan)
    np.testing.assert_allclose(bijector.inverse(y), x, atol=1e-12)


def test_chain_of_all_bijectors_transforms_the_factor_as_the_distribution_does() -> None:
    rng, df, size = np.random.default_rng(3), 2, 4
    row_mixing = reference.random_invertible(rng, size, size)
    column_mixing_tril = reference.random_tril(rng, df, df)
    parameters = reference.random_bartlett(rng, size, df)
    steps = SingularCongruence(row_mixing, df), TallCholeskyOuterProduct(df)
    chain = tfp.bijectors.Chain([*steps, RightTriangularProduct(column_mixing_tril)])
    factor = GeneralisedBartlett(**parameters)
    transformed = tfp.distributions.TransformedDistribution(factor, chain)
    direct = ABGeneralisedSingularWishart(df, row_mixing, column_mixing_tril, **parameters)
    assert transformed.event_shape == direct.event_shape
    sample, log_prob = transformed.experimental_sample_and_log_prob([5], seed=[1, 2])
    np.testing.assert_allclose(direct.sample(5, seed=[1, 2]), sample, atol=1e-12)
    np.testing.assert_allclose(direct.log_prob(sample.numpy()), log_prob, atol=1e-7)
    np.testing.assert_allclose(transformed.log_prob(sample.numpy()), log_prob, atol=1e-7)


NOT_SQUARE = [np.ones([2, 3]), np.ones(3)]
NOT_TRIANGULAR = [np.diag([1.0, 0.0]), np.diag([1.0, -1.0]), [[1.0, 0.0], [np.nan, 1.0]]]
SINGULAR = [np.arange(9.0).reshape(3, 3), np.zeros([2, 2]), np.diag([1.0, np.inf])]
SINGULAR += [[np.eye(2), np.ones([2, 2])]]


@pytest.mark.parametrize(
    ("make", "refused", "message"),
    [
        (RightTriangularProduct, [*NOT_SQUARE, *NOT_TRIANGULAR], "column_mixing_tril"),
        (lambda matrix: SingularCongruence(matrix, 2), [*NOT_SQUARE, *SINGULAR], "row_mixing"),
        (lambda matrix: TriangularCongruence(matrix, 2), [np.diag([1.0, 0.0])], "row_mixing"),
        (TallCholeskyOuterProduct, [0, 1.0, True, None], "rank must be"),
    ],
)
def test_bad_arguments_raise(make: Callable[[Any], Any], refused: list[Any], message: str) -> None:
    for argument in refused:
        with pytest.raises(ValueError, match=message):
            make(argument)


def test_a_badly_scaled_matrix_is_not_singular() -> None:
    bijector = SingularCongruence(np.diag([1e-20, 1.0]), 2)
    np.testing.assert_allclose(bijector.forward(np.eye(2)), np.diag([1e-40, 1.0]), rtol=1e-12)
    TriangularCongruence([[1.0, np.nan], [0.0, -1.0]], 2)


def test_shapes_of_outer_products() -> None:
    bijector = TallCholeskyOuterProduct(2)
    assert bijector.rank == 2
    assert bijector.forward_event_shape([5, None, 2]).as_list() == [5, None, None]
    assert bijector.inverse_event_shape([5, 4, 4]) == [5, 4, 2]
    np.testing.assert_array_equal(bijector.forward_event_shape_tensor([5, 4, 2]), [5, 4, 4])
    np.testing.assert_array_equal(bijector.inverse_event_shape_tensor([5, 4, 4]), [5, 4, 2])
    assert bijector.experimental_batch_shape() == []
    assert bijector.copy(rank=3).rank == 3


def test_an_input_that_is_not_positive_is_nan() -> None:
    inverse = TallCholeskyOuterProduct(2).inverse(-np.eye(2)).numpy()
    assert np.all(np.isnan(inverse[np.tri(2, dtype=bool)]))


@pytest.mark.parametrize(
    ("bijector", "shapes"),
    [
        (RightTriangularProduct(np.eye(3)), ([4, 2], [2, 3])),
        (SingularCongruence(np.eye(3), 2), ([3, 2], [3])),
        (TallCholeskyOuterProduct(2), ([4, 3], [1, 1])),
    ],
)
def test_inputs_of_another_shape_raise(bijector: Any, shapes: tuple[list[int], ...]) -> None:
    for method in (bijector.forward, bijector.inverse):
        for shape in shapes:
            with pytest.raises(ValueError, match=r"input must (have|be)|rank must be at most"):
                method(np.ones(shape))
