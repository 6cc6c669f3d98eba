"""Factorised covariances: values, gradients, and what happens when a factorisation fails."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.linalg import (
    Factorised,
    as_jitter,
    cholesky,
    conditional_mean,
    conditional_moments,
    explained_moments,
    factorise,
    pseudo_target_posterior,
    regression_posterior,
    relative_jitter,
    whiten,
)
from gpflow_dwp.linalg.factorisation import weighted_gram
from gpflow_dwp.linalg.triangular import relative_precision

Operation = Callable[..., tuple[tf.Tensor, ...]]


def matrices(*shape: int, dtype: type = np.float64) -> tf.Tensor:
    rng = np.random.default_rng(0)
    return tf.constant(model_reference.random_covariance(rng, *shape), dtype)


def arrays(*shape: int, seed: int = 3) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


def factorise_plainly(matrix: tf.Tensor) -> Factorised:
    return factorise(matrix, tf.zeros(tf.shape(matrix)[:-2], matrix.dtype))


def indefinite(smallest: float) -> np.ndarray:
    """A matrix with one eigenvalue that is not positive."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return rotation @ np.diag([1.0, 2.0, smallest]) @ rotation.T


def scale_of(root: tf.Tensor) -> tf.Tensor:
    return tf.matmul(root, root, transpose_b=True) + tf.eye(4, dtype=tf.float64)


def relative_precision_ours(
    matrix: tf.Tensor, root: tf.Tensor, columns: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    below, scale = factorise_plainly(matrix), factorise_plainly(scale_of(root))
    precision, colored, log_det_ratio = relative_precision(below, scale, columns)
    # A symmetric function of the precision, as it asks for.
    return precision + tf.linalg.matrix_transpose(precision), colored, log_det_ratio


def relative_precision_plainly(
    matrix: tf.Tensor, root: tf.Tensor, columns: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    tril = tf.linalg.cholesky(scale_of(root))
    precision = tf.matmul(tril, tf.matmul(tf.linalg.inv(matrix), tril), transpose_a=True)
    log_det_ratio = 0.5 * (tf.linalg.logdet(scale_of(root)) - tf.linalg.logdet(matrix))
    return 2.0 * precision, tf.matmul(tril, columns), log_det_ratio


def pseudo_target_posterior_plainly(
    matrix: tf.Tensor, precision_tril: tf.Tensor, pseudo_targets: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    precision = tf.matmul(precision_tril, precision_tril, transpose_b=True)
    inverse = tf.linalg.inv(matrix + tf.linalg.inv(precision))
    inner = tf.matmul(precision_tril, tf.matmul(matrix, precision_tril[None]), transpose_a=True)
    inner_tril = tf.linalg.cholesky(tf.eye(4, dtype=tf.float64) + inner)
    transposed = tf.transpose(precision_tril) + tf.zeros_like(inner)
    root = tf.linalg.triangular_solve(inner_tril, transposed)
    weights = tf.matmul(inverse, pseudo_targets)
    covariance = matrix - tf.matmul(matrix, tf.matmul(inverse, matrix))
    mean = tf.matmul(matrix, weights)
    return root, weights, divergence_from_prior(mean, covariance, matrix)


def regression_posterior_plainly(
    matrix: tf.Tensor, cross: tf.Tensor, targets: tf.Tensor, precision: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """From the posterior of u that Bayes' rule gives for y = C^T K^-1 u + noise."""
    design = tf.linalg.solve(matrix, cross)
    outer = tf.matmul(design, design, transpose_b=True)
    covariance = tf.linalg.inv(tf.linalg.inv(matrix) + precision * outer)
    mean = precision * tf.matmul(covariance, tf.matmul(design, targets))
    weights = tf.linalg.solve(matrix, mean)
    prior_precision = tf.linalg.inv(matrix)
    inverse = tf.matmul(prior_precision, tf.matmul(matrix - covariance, prior_precision))
    return inverse, weights, divergence_from_prior(mean, covariance, matrix)


def divergence_from_prior(mean: tf.Tensor, covariance: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Of one dense Gaussian from another with mean zero, summed over columns of the mean."""
    log_det = tf.linalg.logdet(covariance) - tf.linalg.logdet(matrix)
    trace = tf.linalg.trace(tf.linalg.solve(matrix, covariance))
    quadratic = tf.reduce_sum(mean * tf.linalg.solve(matrix, mean), axis=[-2, -1])
    num_columns = float(mean.shape[-1])
    return 0.5 * (num_columns * (trace - float(matrix.shape[-1]) - log_det) + quadratic)


# Each operation beside the same in TensorFlow's own differentiable operations.
OPERATIONS: dict[str, tuple[Operation, Operation]] = {
    "cholesky": (
        lambda matrix: (cholesky(factorise_plainly(matrix)),),
        lambda matrix: (tf.linalg.cholesky(matrix),),
    ),
    "whiten": (
        lambda matrix, columns: whiten(factorise_plainly(matrix), columns),
        lambda matrix, columns: (
            tf.matmul(tf.linalg.inv(tf.linalg.cholesky(matrix)), columns),
            tf.linalg.logdet(matrix),
        ),
    ),
    "weighted_gram": (
        lambda matrix, rows, weights: (matrix + weighted_gram(rows, weights),),
        lambda matrix, rows, weights: (matrix + tf.matmul(rows * weights, rows, transpose_b=True),),
    ),
    "relative_precision": (relative_precision_ours, relative_precision_plainly),
    "pseudo_target_posterior": (pseudo_target_posterior, pseudo_target_posterior_plainly),
    "regression_posterior": (
        lambda matrix, cross, targets, root: regression_posterior(
            factorise_plainly(matrix), cross, targets, tf.square(root)
        ),
        lambda matrix, cross, targets, root: regression_posterior_plainly(
            matrix, cross, targets, tf.square(root)
        ),
    ),
    "explained_moments": (
        lambda root, weights, cross: (
            *explained_moments(root, weights, cross, rooted=False),
            *explained_moments(root, weights, cross, rooted=True),
        ),
        lambda root, weights, cross: (
            tf.matmul(cross, weights, transpose_a=True),
            tf.reduce_sum(cross * tf.matmul(root, cross), axis=-2),
            tf.matmul(cross, weights, transpose_a=True),
            tf.reduce_sum(tf.square(tf.matmul(root, cross)), axis=-2),
        ),
    ),
    "conditional_moments": (
        lambda matrix, cross, features: (
            conditional_mean(factorise_plainly(matrix), cross, features),
            *conditional_moments(factorise_plainly(matrix), cross, features),
        ),
        lambda matrix, cross, features: (
            tf.matmul(cross, tf.matmul(tf.linalg.inv(matrix), features), transpose_a=True),
            tf.matmul(cross, tf.matmul(tf.linalg.inv(matrix), features), transpose_a=True),
            tf.reduce_sum(cross * tf.matmul(tf.linalg.inv(matrix), cross), axis=-2),
        ),
    ),
}

CASES = [
    ("cholesky", [(2, 4, 4)]),
    ("cholesky", [(4, 4)]),
    ("whiten", [(2, 4, 4), (2, 4, 3)]),
    ("whiten", [(2, 4, 4), (1, 4, 3)]),
    ("whiten", [(1, 4, 4), (2, 4, 3)]),
    ("weighted_gram", [(4, 4), (4, 3), (3,)]),
    ("relative_precision", [(2, 4, 4), (2, 4, 4), (2, 4, 3)]),
    ("relative_precision", [(1, 4, 4), (1, 4, 4), (2, 4, 3)]),
    ("pseudo_target_posterior", [(2, 4, 4), (4, 4), (4, 1)]),
    ("pseudo_target_posterior", [(2, 4, 4), (4, 4), (4, 3)]),
    ("regression_posterior", [(2, 4, 4), (2, 4, 5), (5, 1), ()]),
    ("regression_posterior", [(1, 4, 4), (1, 4, 5), (5, 3), ()]),
    ("explained_moments", [(2, 4, 4), (2, 4, 3), (2, 4, 5)]),
    ("explained_moments", [(1, 4, 4), (1, 4, 3), (2, 4, 5)]),
    ("conditional_moments", [(2, 4, 4), (2, 4, 5), (2, 4, 3)]),
    ("conditional_moments", [(2, 4, 4), (2, 4, 5), (1, 4, 3)]),
    ("conditional_moments", [(1, 4, 4), (1, 4, 5), (2, 4, 3)]),
]


# The last shapes of each operation, of which most broadcast, are tried in compiled code.
@pytest.mark.parametrize(("name", "shapes"), CASES, ids=str)
def test_values_and_gradients_are_those_of_plain_operations(
    name: str, shapes: list[tuple[int, ...]]
) -> None:
    arguments = [matrices(*shapes[0][:-1])]
    arguments += [arrays(*shape, seed=seed) for seed, shape in enumerate(shapes[1:])]

    def symmetrised(operation: Operation) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            results = operation(*arguments)
            score = tf.add_n(
                [
                    tf.reduce_sum(arrays(*result.shape, seed=10 + index) * tf.sin(result))
                    for index, result in enumerate(results)
                ]
            )
        first, *rest = tape.gradient(score, arguments)
        return list(results), [first + tf.linalg.matrix_transpose(first), *rest]

    ours, plain = OPERATIONS[name]
    compiled = tf.function(symmetrised, autograph=False)
    found = (compiled if dict(CASES)[name] == shapes else symmetrised)(ours)

    for got, expected in zip(*map(tf.nest.flatten, (found, symmetrised(plain))), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, atol=1e-10)


def test_gradient_of_the_jitter() -> None:
    root = tf.Variable(np.linalg.cholesky(matrices(2, 4)))

    def score() -> tf.Tensor:
        matrix = tf.matmul(root, root, transpose_b=True)
        return tf.reduce_sum(tf.sin(cholesky(factorise(matrix, relative_jitter(matrix, 0.3)))))

    model_reference.assert_gradients_are_finite_differences(score, [root], 1e-6)


def test_gradients_by_way_of_the_root_bear_nearly_singular_covariances() -> None:
    """A rounding error of the features must not become one of their gradients' own size."""
    rng = np.random.default_rng(0)
    features, targets = 0.01 * rng.normal(size=(1, 30, 3)), 0.01 * rng.normal(size=(1, 80, 3))
    precision_tril = 100.0 * np.tril(rng.normal(size=(30, 30)))
    pseudo_targets = rng.normal(size=(30, 1))

    def kernel(points: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
        difference = points[..., :, None, :] - others[..., None, :, :]
        return 1e5 * tf.exp(-0.5 * tf.reduce_sum(tf.square(difference), axis=-1))

    def gradient(features: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(features)
            root, weights, divergence = pseudo_target_posterior(
                kernel(features, features), tf.constant(precision_tril), tf.constant(pseudo_targets)
            )
            mean, explained = explained_moments(
                root, weights, kernel(features, targets), rooted=True
            )
            score = tf.reduce_sum(tf.square(mean)) - tf.reduce_sum(explained + divergence)
        return tape.gradient(score, features)

    perturbed = features * (1.0 + 1e-13 * rng.normal(size=features.shape))
    found, wanted = gradient(tf.constant(perturbed)), gradient(tf.constant(features))

    np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("batch", [1, 2])
def test_moments_with_gradients_in_single_precision(batch: int) -> None:
    arguments = [matrices(batch, 4), arrays(batch, 4, 5, seed=0), arrays(2, 4, 3, seed=1)]

    def moments(dtype: tf.DType | None) -> tuple[tuple[tf.Tensor, tf.Tensor], list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            matrix, cross, features = arguments
            mean, explained = conditional_moments(
                factorise_plainly(matrix), cross, features, gradient_dtype=dtype
            )
            score = tf.reduce_sum(tf.sin(mean)) + tf.reduce_sum(tf.cos(explained))
        return (mean, explained), tape.gradient(score, arguments)

    (mean, explained), found = moments(tf.float32)
    (wanted_mean, wanted_explained), wanted = moments(None)

    np.testing.assert_array_equal(mean, wanted_mean)
    np.testing.assert_array_equal(explained, wanted_explained)
    for actual, exact in zip(found, wanted, strict=True):
        assert actual.dtype == tf.float64
        np.testing.assert_allclose(actual, exact, rtol=1e-4, atol=1e-5)
        assert np.any(actual != exact)


def test_jitter_is_relative_and_added_to_the_diagonal() -> None:
    matrix = matrices(2, 1, 3)
    expected = 1e-3 * np.diagonal(matrix, axis1=-2, axis2=-1).mean(axis=-1)
    np.testing.assert_allclose(relative_jitter(matrix, 1e-3), expected)

    factorised = factorise(matrix, tf.constant([[0.1], [0.2]], tf.float64))

    jittered = matrix + np.array([0.1, 0.2])[:, None, None, None] * np.eye(3)
    np.testing.assert_allclose(factorised.matrix, jittered, atol=1e-15)
    np.testing.assert_allclose(factorised.tril, np.linalg.cholesky(jittered), atol=1e-12)


def test_only_a_failing_matrix_gets_more_jitter() -> None:
    batch = tf.constant(np.stack([indefinite(0.5), indefinite(-1e-5)]))
    jitter = tf.constant([1e-6, 1e-6], tf.float64)

    tril = factorise(batch, jitter).tril

    np.testing.assert_array_equal(tril[:1], factorise(batch[:1], jitter[:1]).tril)
    added = tf.matmul(tril[1], tril[1], transpose_b=True) - batch[1]
    np.testing.assert_allclose(added, 1e-4 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("smallest", "jitter", "tried"),
    [(-0.5, 1e-6, ", even with a jitter of 100000 times 1e-06"), (-1e-3, 0.0, "")],
)
def test_a_hopeless_matrix_is_an_error_in_eager_mode(
    smallest: float, jitter: float, tried: str
) -> None:
    batch = tf.constant(np.stack([indefinite(0.5), indefinite(smallest)]))

    message = rf"Cholesky decomposition of this layer's K_ii failed{tried}\. Check the data"
    with pytest.raises(CholeskyError, match=message):
        factorise(batch, tf.constant([jitter, jitter], tf.float64), name="this layer's K_ii")


def test_gradient_after_escalation_is_that_of_the_jittered_matrix() -> None:
    matrix = tf.constant(indefinite(-1e-4))

    with tf.GradientTape() as tape:
        tape.watch(matrix)
        factorised = factorise(matrix, tf.constant(1e-6, tf.float64))
        _, log_det = whiten(factorised, tf.eye(3, dtype=tf.float64))

    expected = np.linalg.inv(matrix + 1e-3 * np.eye(3))
    np.testing.assert_allclose(tape.gradient(log_det, matrix), expected, rtol=1e-9)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_it_equals_eager_and_is_nan_where_there_is_no_hope(jit_compile: bool) -> None:
    batch = tf.constant(np.stack([matrices(3), indefinite(-1e-4), indefinite(-0.5)]))
    cross, features = arrays(3, 3, 4), arrays(3, 3, 2)

    def run(batch: tf.Tensor, count: int) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch(batch)
            factorised = factorise(batch, tf.fill([count], tf.constant(1e-6, tf.float64)))
            mean, explained = conditional_moments(factorised, cross[:count], features[:count])
            score = tf.reduce_sum(tf.sin(cholesky(factorised))) + tf.reduce_sum(mean)
            score += tf.reduce_sum(tf.sin(explained))
        return mean, explained, tape.gradient(score, batch), factorised.tril

    compiled = tf.function(run, jit_compile=jit_compile, autograph=False)(batch, 3)
    for value, expected in zip(compiled, run(batch[:2], 2), strict=True):
        np.testing.assert_allclose(value[:2], expected, rtol=1e-8, atol=1e-10)
    assert np.isnan(compiled[-1].numpy()[2][np.tril_indices(3)]).all()


def test_jitter_is_gpflows_where_none_is_given_and_a_finite_number_from_zero() -> None:
    assert as_jitter(None) == 1e-6
    assert as_jitter(0) == 0.0
    gpflow.config.set_default_jitter(1e-4)
    assert as_jitter(None) == 1e-4
    assert as_jitter(np.float32(0.5)) == 0.5
    for jitter in (np.nan, np.inf, -np.inf, -1e-6, True, "1e-6", np.ones(1)):
        with pytest.raises(ValueError, match="^jitter must "):
            as_jitter(jitter)
