from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from gpflow_dwp.distributions import _draws


@pytest.mark.parametrize("concentration", [0.01, 0.5, 3.0, 40.0])
def test_draws_have_the_law(concentration: float) -> None:
    # A Kolmogorov-Smirnov test at p = 1e-4 (a deviation of 3.9 sigma).
    alpha = tf.fill([5000], tf.constant(concentration, tf.float64))
    draws = np.exp(_draws.sample_log_gamma(alpha, [1, 2]))
    assert stats.kstest(draws, stats.gamma(concentration).cdf).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("concentration", [0.01, 0.05, 0.5, 3.0])
def test_gradient_has_the_limit_for_small_draws(concentration: float, dtype: type) -> None:
    # Draws of such a concentration underflow in single precision, their logarithms do not.
    alpha = tf.fill([200], tf.constant(concentration, dtype))
    with tf.GradientTape() as tape:
        tape.watch(alpha)
        draws = _draws.sample_log_gamma(alpha, [3, 4])
    got, draws = tape.gradient(draws, alpha).numpy(), draws.numpy().astype(np.float64)
    assert np.all(np.isfinite(got))
    small = draws < -14.0
    expected = (special.digamma(concentration + 1.0) - draws) / concentration
    np.testing.assert_allclose(got[small], expected[small], rtol=1e-4)
    assert np.any(small) or concentration > 0.3


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 5e-5), (np.float64, 1e-5)])
@pytest.mark.parametrize("concentration", [999.0, 1001.0, 1e4, 1e6])
def test_gradient_for_large_concentrations(concentration: float, dtype: type, rtol: float) -> None:
    quantiles = stats.norm.cdf(np.linspace(-4.0, 4.0, 9))
    step = 1e-3 * concentration
    ahead, behind = (
        np.log(special.gammaincinv(concentration + sign * step, quantiles)) for sign in (1.0, -1.0)
    )
    log_gamma = np.log(special.gammaincinv(concentration, quantiles)).astype(dtype)
    alpha = tf.fill([9], tf.constant(concentration, dtype))
    with tf.GradientTape() as tape:
        tape.watch(alpha)
        draws = _draws._with_implicit_gradient(alpha, tf.constant(log_gamma))

    got = tape.gradient(draws, alpha)

    np.testing.assert_allclose(got, (ahead - behind) / (2.0 * step), rtol=rtol)


def test_gradient_reaches_the_concentration_through_a_compiled_function() -> None:
    alpha = tf.constant([0.3, 2.0], tf.float64)

    def gradient(alpha: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(alpha)
            draws = _draws.sample_log_gamma(alpha, [5, 6])
        return tape.gradient(draws, alpha)

    np.testing.assert_allclose(tf.function(gradient, autograph=False)(alpha), gradient(alpha))


def test_draws_are_the_same_in_eager_compiled_and_xla_code() -> None:
    alpha = tf.constant([[0.02, 0.3], [2.0, 50.0]], tf.float64)
    eager = _draws.sample_log_gamma(alpha, [7, 8])
    for jit_compile in (False, True):
        # The seed is an argument: TensorFlow draws from a constant one before XLA sees it.
        draw = tf.function(_draws.sample_log_gamma, jit_compile=jit_compile, autograph=False)
        compiled = draw(alpha, tf.constant([7, 8]))
        np.testing.assert_allclose(compiled, eager, rtol=1e-12)
