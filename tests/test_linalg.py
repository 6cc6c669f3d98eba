"""The Cholesky factor with its inverse: values, gradients, and what happens when it fails."""

from __future__ import annotations

import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.linalg import cholesky_with_inverse, relative_jitter


def matrices(*shape: int, dtype: type = np.float64) -> tf.Tensor:
    rng = np.random.default_rng(0)
    return tf.constant(model_reference.random_covariance(rng, *shape), dtype)


def indefinite(smallest: float) -> np.ndarray:
    """A matrix with one eigenvalue that is not positive."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return rotation @ np.diag([1.0, 2.0, smallest]) @ rotation.T


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3), (2, 1, 3)])
def test_factor_and_inverse(shape: tuple[int, ...]) -> None:
    matrix = matrices(*shape)
    jitter = tf.fill(shape[:-1], tf.constant(1e-3, tf.float64))

    factor, inverse = cholesky_with_inverse(matrix, jitter)

    expected = np.linalg.cholesky(matrix + 1e-3 * np.eye(shape[-1]))
    np.testing.assert_allclose(factor, expected, atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(expected), atol=1e-12)


@pytest.mark.parametrize("which", ["factor", "inverse", "both"])
def test_gradient_is_that_of_the_plain_operations(which: str) -> None:
    matrix = matrices(2, 4)
    jitter = tf.zeros([2], tf.float64)
    weights = tf.constant(np.random.default_rng(2).normal(size=(2, 2, 4, 4)))
    on_factor, on_inverse = float(which != "inverse"), float(which != "factor")

    def score(factor: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
        score = on_factor * tf.reduce_sum(weights[0] * tf.sin(factor))
        return score + on_inverse * tf.reduce_sum(weights[1] * tf.sin(inverse))

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(matrix)
        ours = score(*cholesky_with_inverse(matrix, jitter))
        plain_factor = tf.linalg.cholesky(matrix)
        plain = score(plain_factor, tf.linalg.inv(plain_factor))

    gradient, expected = tape.gradient(ours, matrix), tape.gradient(plain, matrix)
    np.testing.assert_allclose(gradient, gradient.numpy().swapaxes(-1, -2), atol=1e-12)
    symmetric = 0.5 * (expected + tf.linalg.matrix_transpose(expected))
    np.testing.assert_allclose(gradient, symmetric, atol=1e-10)


def test_gradient_is_that_of_finite_differences() -> None:
    matrix, jitter = matrices(3), tf.constant(0.1, tf.float64)
    direction = matrices(3) - tf.eye(3, dtype=tf.float64)

    def score(matrix: tf.Tensor) -> tf.Tensor:
        factor, inverse = cholesky_with_inverse(matrix, jitter)
        return tf.reduce_sum(tf.sin(factor) + tf.cos(2.0 * inverse))

    with tf.GradientTape() as tape:
        tape.watch(matrix)
        value = score(matrix)
    slope = tf.reduce_sum(tape.gradient(value, matrix) * direction)

    step = 1e-6
    expected = (score(matrix + step * direction) - score(matrix - step * direction)) / (2.0 * step)
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


def test_jitter_grows_for_the_failing_matrix_alone() -> None:
    good = matrices(3).numpy()
    batch = tf.constant(np.stack([good, indefinite(-1e-4)]))
    jitter = tf.constant([1e-6, 1e-6], tf.float64)

    factor, inverse = cholesky_with_inverse(batch, jitter)

    plain, _ = cholesky_with_inverse(batch[:1], jitter[:1])
    np.testing.assert_array_equal(factor[0], plain[0])
    added = factor[1] @ tf.transpose(factor[1]) - batch[1]
    np.testing.assert_allclose(added, 1e-3 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(factor @ inverse, np.stack([np.eye(3)] * 2), atol=1e-9)


def test_gradient_after_escalation_is_finite_and_that_of_the_jittered_matrix() -> None:
    matrix = tf.constant(indefinite(-1e-4))

    def log_det_gradient(jitter: float) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(matrix)
            factor, _ = cholesky_with_inverse(matrix, tf.constant(jitter, tf.float64))
            log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
        return tape.gradient(log_det, matrix)

    gradient = log_det_gradient(1e-6)

    np.testing.assert_allclose(gradient, np.linalg.inv(matrix + 1e-3 * np.eye(3)), rtol=1e-9)
    np.testing.assert_allclose(gradient, log_det_gradient(1e-3), rtol=1e-12)


@pytest.mark.parametrize("matrix", [indefinite(-1.0), np.full((3, 3), np.nan)])
def test_failure_in_eager_mode_names_the_matrix(matrix: np.ndarray) -> None:
    with pytest.raises(CholeskyError, match="Cholesky decomposition of a special matrix failed"):
        cholesky_with_inverse(
            tf.constant(matrix), tf.constant(1e-6, tf.float64), name="a special matrix"
        )


@pytest.mark.parametrize("jit_compile", [False, True])
def test_failure_in_a_compiled_function_is_nan(jit_compile: bool) -> None:
    batch = tf.constant(np.stack([matrices(3), indefinite(-1.0)]))

    @tf.function(jit_compile=jit_compile, autograph=False)
    def compiled(batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return cholesky_with_inverse(batch, tf.constant([1e-6, 1e-6], tf.float64))

    factor, inverse = compiled(batch)

    assert np.all(np.isfinite(factor[0])) and np.all(np.isfinite(inverse[0]))
    lower = np.tri(3, dtype=bool)
    assert np.all(np.isnan(factor[1])[lower]) and np.all(np.isnan(inverse[1])[lower])


def test_xla_equals_plain_with_gradient() -> None:
    batch = tf.constant(np.stack([matrices(3), indefinite(-1e-4)]))

    def run(batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(batch)
            factor, inverse = cholesky_with_inverse(batch, tf.constant([1e-6, 1e-6], tf.float64))
            score = tf.reduce_sum(tf.sin(factor) + tf.sin(inverse))
        return factor, inverse, tape.gradient(score, batch)

    compiled = tf.function(run, jit_compile=True, autograph=False)
    for value, expected in zip(compiled(batch), run(batch), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


def test_float32() -> None:
    matrix = matrices(2, 4, dtype=np.float32)

    factor, inverse = cholesky_with_inverse(matrix, relative_jitter(matrix, 1e-6))

    assert factor.dtype == inverse.dtype == tf.float32
    np.testing.assert_allclose(factor @ inverse, np.stack([np.eye(4)] * 2), atol=1e-5)


def test_relative_jitter_is_a_fraction_of_the_mean_variance() -> None:
    matrix = tf.constant([[[1.0, 9.0], [9.0, 3.0]], [[10.0, 0.0], [0.0, 20.0]]], tf.float64)

    np.testing.assert_allclose(relative_jitter(matrix, 0.1), [0.2, 1.5])


def test_no_gradient_flows_through_the_jitter() -> None:
    matrix = matrices(3)
    with tf.GradientTape() as tape:
        tape.watch(matrix)
        jitter = relative_jitter(matrix, 0.1)

    assert tape.gradient(jitter, matrix) is None
