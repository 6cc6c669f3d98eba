from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.bijectors import (
    RightTriangularProduct,
    SingularCongruence,
    TallCholeskyOuterProduct,
    TriangularCongruence,
)
from gpflow_dwp.distributions import ABGeneralisedSingularWishart, GeneralisedBartlett

MATRICES = {
    SingularCongruence: reference.random_invertible,
    TriangularCongruence: reference.random_tril,
}
every_kind = pytest.mark.parametrize("kind", MATRICES)


def outer(factor: np.ndarray) -> np.ndarray:
    return factor @ np.swapaxes(factor, -1, -2)


@every_kind
@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_determinants_match_finite_differences(
    size: int, df: int, kind: type[SingularCongruence]
) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    matrix = MATRICES[kind](rng, 2, size, size)
    bijector = kind(matrix, df)
    factor = reference.random_trapezoid(rng, 2, size, rank)

    expected = reference.assert_log_determinants(
        bijector,
        rank,
        *(outer(factor), outer(matrix @ factor)),
        *(reference.complete, reference.complete),
        forward_tolerance=1e-5,
        inverse_tolerance=1e-4,
        inverse_step=1e-7,
    )
    got = bijector.forward_log_det_jacobian_of_factors(
        tf.constant(factor), bijector.mix_rows(tf.constant(factor))
    )
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@every_kind
@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_forward_is_the_congruence_and_inverse_undoes_it(
    size: int, df: int, kind: type[SingularCongruence]
) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    matrix = MATRICES[kind](rng, 2, 1, size, size)
    bijector = kind(matrix, df)
    factor = reference.random_trapezoid(rng, 3, size, rank)
    x = outer(factor)
    # As an array: TFP would find the forward pass of a tensor in its cache.
    y = bijector.forward(x).numpy()
    np.testing.assert_allclose(y, outer(matrix @ factor), atol=1e-13)
    np.testing.assert_allclose(bijector.mix_rows(tf.constant(factor)), matrix @ factor, atol=1e-14)
    recovered = bijector.inverse(y).numpy()
    np.testing.assert_allclose(recovered, np.broadcast_to(x, [2, 3, size, size]), atol=1e-11)
    for result in (y, recovered):
        np.testing.assert_array_equal(result, np.swapaxes(result, -1, -2))
    log_det = bijector.forward_log_det_jacobian(x).numpy() + np.zeros([2, 3])
    inverse_log_det = bijector.inverse_log_det_jacobian(y).numpy() + np.zeros([2, 3])
    np.testing.assert_allclose(inverse_log_det, -log_det, atol=1e-9)


def test_chain_of_all_bijectors_transforms_the_factor_as_the_distribution_does() -> None:
    rng, df, size = np.random.default_rng(3), 2, 4
    row_mixing = reference.random_invertible(rng, size, size)
    column_mixing_tril = reference.random_tril(rng, df, df)
    parameters = reference.random_bartlett(rng, size, df)
    chain = tfp.bijectors.Chain(
        [
            SingularCongruence(row_mixing, df),
            TallCholeskyOuterProduct(df),
            RightTriangularProduct(column_mixing_tril),
        ]
    )
    transformed = tfp.distributions.TransformedDistribution(
        GeneralisedBartlett(**parameters), chain
    )
    direct = ABGeneralisedSingularWishart(df, row_mixing, column_mixing_tril, **parameters)
    assert transformed.event_shape == direct.event_shape
    sample, log_prob = transformed.experimental_sample_and_log_prob([5], seed=[1, 2])
    np.testing.assert_allclose(direct.sample(5, seed=[1, 2]), sample, atol=1e-12)
    np.testing.assert_allclose(direct.log_prob(sample.numpy()), log_prob, atol=1e-7)
    np.testing.assert_allclose(transformed.log_prob(sample.numpy()), log_prob, atol=1e-7)


@pytest.mark.parametrize(
    "matrix",
    [
        np.ones([2, 3]),
        np.ones([3]),
        np.arange(9.0).reshape(3, 3),
        np.zeros([2, 2]),
        np.diag([1.0, np.inf]),
        [np.eye(2), np.ones([2, 2])],
    ],
)
def test_bad_matrices_raise(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="row_mixing"):
        SingularCongruence(matrix, 2)


def test_bad_triangular_matrices_raise() -> None:
    with pytest.raises(ValueError, match="row_mixing"):
        TriangularCongruence(np.diag([1.0, 0.0]), 2)
    TriangularCongruence([[1.0, np.nan], [0.0, -1.0]], 2)


def test_a_badly_scaled_matrix_is_not_singular() -> None:
    bijector = SingularCongruence(np.diag([1e-20, 1.0]), 2)
    np.testing.assert_allclose(bijector.forward(np.eye(2)), np.diag([1e-40, 1.0]), rtol=1e-12)


def test_inputs_of_another_shape_raise() -> None:
    bijector = SingularCongruence(np.eye(3), 2)
    for shape in ([2, 2], [3, 2], [3]):
        for method in (bijector.forward, bijector.inverse):
            with pytest.raises(ValueError, match="input must have"):
                method(np.ones(shape))


def test_singular_traced_values_are_asserted_if_asked() -> None:
    @tf.function(autograph=False)
    def forward(matrix: tf.Tensor) -> tf.Tensor:
        return SingularCongruence(matrix, 2, validate_args=True).forward(np.eye(2))

    forward(tf.eye(2, dtype=tf.float64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="row_mixing"):
        forward(tf.ones([2, 2], dtype=tf.float64))
