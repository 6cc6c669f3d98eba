from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from gpflow_dwp.layers._gamma_quantile import gamma_quantile

CONCENTRATIONS = [1.0, 1.5, 2.0, 30.0, 80.0, 999.0, 1001.0, 1e5]
RANGE = {np.float64: (-8.3, 8.0), np.float32: (-5.5, 5.0)}

both_precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def exact(concentration: float, x: np.ndarray) -> np.ndarray:
    tail = special.ndtr(-np.abs(x))
    return np.where(
        x < 0.0,
        special.gammaincinv(concentration, tail),
        special.gammainccinv(concentration, tail),
    )


def value_and_gradients(concentration: tf.Tensor, x: tf.Tensor) -> list[tf.Tensor]:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([concentration, x])
        value = gamma_quantile(concentration, x)
    return [value, tape.gradient(value, concentration), tape.gradient(value, x)]


@both_precisions
def test_value_and_gradients_are_those_of_the_quantile(dtype: type) -> None:
    x = np.linspace(*RANGE[dtype], 41).astype(dtype)
    alpha = tf.constant(CONCENTRATIONS, dtype)[:, None]

    value, in_concentration, in_x = value_and_gradients(
        tf.tile(alpha, [1, 41]), tf.tile(x[None], [len(CONCENTRATIONS), 1])
    )

    concentration, wide = np.array(CONCENTRATIONS)[:, None], x.astype(np.float64)
    single = dtype == np.float32
    expected = exact(concentration, wide)
    np.testing.assert_allclose(value, expected, rtol=5e-5 if single else 3e-8)
    step = 1e-4 * concentration
    slope = exact(concentration + step, wide) - exact(concentration - step, wide)
    np.testing.assert_allclose(
        in_concentration, slope / (2.0 * step), rtol=1e-3 if single else 1e-5
    )
    density = stats.norm.logpdf(wide) - stats.gamma.logpdf(expected, concentration)
    np.testing.assert_allclose(in_x, np.exp(density), rtol=1e-2 if single else 1e-5)


@both_precisions
def test_compiled_equals_eager(dtype: type) -> None:
    x = tf.constant(np.linspace(-5.0, 5.0, 12).reshape(3, 4), dtype)
    alpha = tf.constant([2.0, 50.0, 5000.0, 1.5], dtype)
    for one, other in zip(
        tf.function(value_and_gradients, autograph=False)(alpha, x),
        value_and_gradients(alpha, x),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@both_precisions
def test_far_tails_are_finite(dtype: type) -> None:
    lowest, highest = RANGE[dtype]
    x = tf.constant([2.0 * lowest, highest + 0.1, highest + 0.5, 1e3], dtype)
    alpha = tf.constant(CONCENTRATIONS, dtype)[:, None]

    value, *gradients = value_and_gradients(alpha, tf.tile(x[None], [len(CONCENTRATIONS), 1]))

    assert np.all(value.numpy() > 0.0)
    np.testing.assert_array_equal(value[:, 1:3], value[:, 2:])
    assert all(np.all(np.isfinite(part)) for part in (value, *gradients))
