"""Gamma variables: their law, quantiles and slopes, against SciPy and 60 digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from gpflow_dwp.distributions.gamma import (
    _move_with_concentration,
    gamma_quantile,
    gamma_slope,
    sample_log_gamma,
)

CONCENTRATIONS = [1.0, 1.5, 2.0, 30.0, 80.0, 999.0, 1001.0, 1e5]
RANGE = {np.float64: (-8.3, 8.0), np.float32: (-5.5, 5.0)}


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_gradients_are_those_of_the_quantile_and_finite_in_far_tails(
    dtype: type,
) -> None:
    lowest, highest = RANGE[dtype]
    far = [2.0 * lowest, highest + 0.1, highest + 0.5, 1e3]
    x = np.append(np.linspace(lowest, highest, 41), far).astype(dtype)
    alpha = tf.constant(CONCENTRATIONS, dtype)[:, None]

    tiled = tf.tile(alpha, [1, 45]), tf.tile(x[None], [len(CONCENTRATIONS), 1])
    parts = [part.numpy() for part in value_and_gradients(*tiled)]

    assert np.all(parts[0] > 0.0) and np.all(np.isfinite(parts))
    np.testing.assert_array_equal(parts[0][:, 42:44], parts[0][:, 43:])
    value, in_concentration, in_x = (part[:, :41] for part in parts)
    concentration, wide = np.array(CONCENTRATIONS)[:, None], x[:41].astype(np.float64)
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


@pytest.mark.parametrize("concentration", [0.01, 0.5, 3.0, 40.0])
def test_draws_have_the_law(concentration: float) -> None:
    # A Kolmogorov-Smirnov test at p = 1e-4 (a deviation of 3.9 sigma).
    alpha = tf.fill([5000], tf.constant(concentration, tf.float64))
    draws = np.exp(sample_log_gamma(alpha, [1, 2]))
    assert stats.kstest(draws, stats.gamma(concentration).cdf).pvalue > 1e-4


QUANTILES = [1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9]
COMPLEMENTS = [0.5, 0.1, 1e-3, 1e-6, 1e-12]


def gammas(concentration: float) -> np.ndarray:
    z = np.append(
        special.gammaincinv(concentration, QUANTILES),
        special.gammainccinv(concentration, COMPLEMENTS),
    )
    return z[z > 1e-290]


def slope_by_digits(concentration: float, z: float) -> float:
    """-∂P/∂α / (z p), by a central difference of fourth order between values of 60 digits."""
    with mpmath.workdps(60):
        alpha, step = mpmath.mpf(concentration), mpmath.mpf(concentration) * mpmath.mpf(10) ** -12
        below = z < concentration

        def probability(multiple: int) -> Any:
            ends = (0, z) if below else (z, mpmath.inf)
            return mpmath.gammainc(alpha + multiple * step, *ends, regularized=True)

        near, far = (probability(k) - probability(-k) for k in (1, 2))
        derivative = (8 * near - far) / (12 * step) * (-1 if below else 1)
        z_density = mpmath.exp(alpha * mpmath.log(z) - z - mpmath.loggamma(alpha))
        return float(derivative / z_density)


# Later sums of z - α are rounded as numbers of their size are.
@pytest.mark.parametrize(
    ("concentration", "rtol"),
    [
        *((c, 5e-14) for c in (0.01, 0.7, 0.999, 1.5, 5.0, 300.0)),
        (1e4, 5e-13),
    ],
)
def test_slope_is_that_of_60_digits(concentration: float, rtol: float) -> None:
    """Catches a bound too short, too few nodes, a wrong side of ψ(α), a lost recurrence."""
    z = gammas(concentration)
    expected = [slope_by_digits(concentration, each) for each in z]

    alpha, log_z = tf.fill(z.shape, tf.constant(concentration, tf.float64)), tf.constant(np.log(z))
    slope = gamma_slope(alpha, log_z)

    np.testing.assert_allclose(slope, expected, rtol=rtol)
    in_single = gamma_slope(tf.cast(alpha, tf.float32), tf.cast(log_z, tf.float32))
    assert in_single.dtype == tf.float32
    np.testing.assert_allclose(in_single, expected, rtol=2e-6)


@pytest.mark.parametrize("concentration", [0.01, 0.2, 0.9])
def test_slope_has_the_limit_of_small_variables(concentration: float) -> None:
    """P → z^α / Γ(α + 1), also where z itself underflows."""
    log_z = tf.constant([-60.0, -800.0, -1e4], tf.float64)

    slope = gamma_slope(tf.fill([3], tf.constant(concentration, tf.float64)), log_z)

    np.testing.assert_allclose(
        slope, (special.digamma(concentration + 1.0) - log_z) / concentration, rtol=1e-14
    )


def test_there_is_no_loop() -> None:
    """The derivative that this one takes the place of is two loops of 100 steps under XLA."""
    spec = tf.TensorSpec([10, 6], tf.float64)
    compiled = tf.function(gamma_slope, jit_compile=True)

    lowered = compiled.experimental_get_compiler_ir(spec, spec)(stage="hlo")

    assert "exponential" in lowered and "while" not in lowered


def of_quantile(alpha: tf.Tensor) -> tf.Tensor:
    return gamma_quantile(alpha, tf.constant([-3.0, 0.0, 2.5], tf.float64))


def of_draw(alpha: tf.Tensor) -> tf.Tensor:
    noise = tf.constant([-3.0, 0.0, 2.5], tf.float64)
    log_gamma = np.log(special.gammaincinv([0.4, 3.0, 300.0], stats.norm.cdf(noise)))
    return tf.exp(_move_with_concentration(alpha, tf.constant(log_gamma)))


@pytest.mark.parametrize(
    ("function", "concentrations"), [(of_quantile, [1.2, 3.0, 300.0]), (of_draw, [0.4, 3.0, 300.0])]
)
def test_second_derivatives_are_those_of_the_quantile(
    function: Callable[[tf.Tensor], tf.Tensor], concentrations: list[float]
) -> None:
    """Catches a second derivative that forgets that the variable moves with its concentration."""
    alpha = tf.constant(concentrations, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(alpha)
        with tf.GradientTape() as inner:
            inner.watch(alpha)
            value = function(alpha)
        slope = inner.gradient(value, alpha)
    second = outer.gradient(slope, alpha)

    probability = stats.norm.cdf([-3.0, 0.0, 2.5])
    step = 1e-4 * alpha.numpy()
    ahead, here, behind = (
        special.gammaincinv(alpha + sign * step, probability) for sign in (1.0, 0.0, -1.0)
    )
    np.testing.assert_allclose(slope, (ahead - behind) / (2.0 * step), rtol=1e-5)
    np.testing.assert_allclose(second, (ahead - 2.0 * here + behind) / step**2, rtol=1e-2)
