from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp.bijectors.column_scaled_tril import ColumnScaledTril

SIZES = range(1, 6)


def random_tril(seed: int, *shape: int) -> np.ndarray:
    return np.tril(0.7 * np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("size", SIZES)
def test_forward_is_a_unit_triangle_with_scaled_columns(size: int) -> None:
    x = random_tril(size, size, size)
    y = ColumnScaledTril().forward(x).numpy()
    for i in range(size):
        for j in range(size):
            below = {True: x[i, j], False: 0.0}[i > j]
            expected = np.exp(x[j, j]) * (1.0 if i == j else below)
            assert y[i, j] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("size", SIZES)
def test_inverse_undoes_forward(size: int) -> None:
    bijector, x = ColumnScaledTril(), random_tril(size, 3, 2, size, size)
    # As arrays: TFP would find the other pass of a tensor in its cache.
    np.testing.assert_allclose(bijector.inverse(bijector.forward(x).numpy()), x, atol=1e-14)
    y = reference.random_tril(np.random.default_rng(size), 2, size, size)
    np.testing.assert_allclose(bijector.forward(bijector.inverse(y).numpy()), y, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_log_determinants_match_finite_differences(size: int) -> None:
    bijector, x = ColumnScaledTril(), random_tril(size, 2, size, size)

    def forward(entries: np.ndarray) -> np.ndarray:
        y = bijector.forward(reference.trapezoid(entries, size, size))
        return reference.free_entries(y.numpy(), size)

    def inverse(entries: np.ndarray) -> np.ndarray:
        y = bijector.inverse(reference.trapezoid(entries, size, size))
        return reference.free_entries(y.numpy(), size)

    expected = reference.log_abs_det_jacobian(forward, reference.free_entries(x, size))
    got = bijector.forward_log_det_jacobian(x)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)
    y = bijector.forward(x).numpy()
    expected = reference.log_abs_det_jacobian(inverse, reference.free_entries(y, size))
    got = bijector.inverse_log_det_jacobian(y)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


def test_gradients_are_those_of_finite_differences() -> None:
    weights = random_tril(4, 3, 3)

    def value(x: tf.Tensor) -> tf.Tensor:
        bijector = ColumnScaledTril()
        return tf.reduce_sum(weights * bijector.forward(x)) + bijector.forward_log_det_jacobian(x)

    entries = reference.free_entries(random_tril(3, 3, 3), 3)
    x = tf.constant(reference.trapezoid(entries, 3, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = value(x)
    got = reference.free_entries(tape.gradient(result, x).numpy(), 3)
    for index, step in enumerate(1e-6 * np.eye(6)):
        high, low = (value(reference.trapezoid(entries + s, 3, 3)) for s in (step, -step))
        assert got[index] == pytest.approx(float(high - low) / 2e-6, rel=1e-6)
