from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf
from scipy import special, stats

from gpflow_dwp.distributions import GeneralisedBartlett


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_independent_entries(size: int, df: int) -> None:
    rng = np.random.default_rng(10 * size + df)
    parameters = reference.random_bartlett(rng, size, df, (2,))
    t = reference.random_tril(rng, 3, 2, size, min(df, size))
    got = GeneralisedBartlett(**parameters).log_prob(t)
    for i, j in np.ndindex(3, 2):
        single = {name: value[j] for name, value in parameters.items()}
        expected = reference.bartlett_log_density(t[i, j], **single)
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-12)


def test_slope_of_log_prob_is_its_gradient() -> None:
    """Catches a wrong formula, which training would follow."""
    rng = np.random.default_rng(0)
    distribution = GeneralisedBartlett(**reference.random_bartlett(rng, 4, 3))
    t, powers = tf.constant(reference.random_tril(rng, 2, 1, 4, 3)[:, 0]), np.arange(3.0)
    with tf.GradientTape() as tape:
        tape.watch(t)
        logs = tf.reduce_sum(powers * tf.math.log(tf.linalg.diag_part(t)), axis=-1)
        value = distribution.log_prob(t) - logs
    slope = distribution.slope_of_log_prob(t, tf.constant(powers))
    np.testing.assert_allclose(slope, tape.gradient(value, t), rtol=1e-12)


def test_marginals_of_samples() -> None:
    # Kolmogorov-Smirnov tests of each entry, at p = 1e-4 (a deviation of 3.9 sigma).
    parameters = reference.random_bartlett(np.random.default_rng(0), 4, 3)
    samples = GeneralisedBartlett(**parameters).sample(5000, seed=[3, 4]).numpy()
    assert np.all(samples[:, ~np.tri(4, 3, dtype=bool)] == 0.0)
    for i, j in zip(*np.tril_indices(4, 0, 3), strict=True):
        if i == j:
            law = stats.gamma(parameters["concentration"][j], scale=1.0 / parameters["rate"][j])
            assert stats.kstest(samples[:, i, j] ** 2, law.cdf).pvalue > 1e-4
        else:
            law = stats.norm(parameters["loc"][i, j], parameters["scale"][i, j])
            assert stats.kstest(samples[:, i, j], law.cdf).pvalue > 1e-4


def test_moments() -> None:
    parameters = reference.random_bartlett(np.random.default_rng(2), 4, 3, (2,))
    distribution = GeneralisedBartlett(**parameters)
    alpha, beta = parameters["concentration"], parameters["rate"]
    mean_diagonal = special.gamma(alpha + 0.5) / (special.gamma(alpha) * np.sqrt(beta))
    variance_diagonal = alpha / beta - mean_diagonal**2
    below, above = np.tri(4, 3, -1, dtype=bool), ~np.tri(4, 3, dtype=bool)
    for moment, of_diagonal, of_below in (
        (distribution.mean(), mean_diagonal, parameters["loc"]),
        (distribution.variance(), variance_diagonal, parameters["scale"] ** 2),
    ):
        np.testing.assert_allclose(np.diagonal(moment, axis1=-2, axis2=-1), of_diagonal)
        np.testing.assert_allclose(moment.numpy()[:, below], of_below[:, below])
        assert np.all(moment.numpy()[:, above] == 0.0)
    np.testing.assert_allclose(distribution.stddev(), np.sqrt(distribution.variance()))


@pytest.mark.parametrize("batched", ["concentration", "rate", "loc", "scale"])
def test_entropy_has_the_batch_shape_whatever_makes_it(batched: str) -> None:
    """Catches that of means, on which the value does not depend."""
    rng = np.random.default_rng(0)
    parameters = reference.random_parameters("GeneralisedBartlett", rng, 3, 2, ())
    parameters[batched] = np.stack(3 * [parameters[batched]])
    assert GeneralisedBartlett(**parameters).entropy().shape == [3]


def test_mean_of_the_diagonal_and_its_gradient_for_all_concentrations() -> None:
    alphas = [*10.0 ** np.arange(-4.0, 8.0), 99.9, 100.1]
    for alpha in alphas:
        one = tf.ones([1, 1], tf.float64)
        concentration = alpha * one[0]
        with tf.GradientTape() as tape:
            tape.watch(concentration)
            log_mean = tf.math.log(GeneralisedBartlett(concentration, one[0], one, one).mean())
        slope = special.digamma(alpha + 0.5) - special.digamma(alpha)
        np.testing.assert_allclose(np.exp(log_mean), [[special.poch(alpha, 0.5)]], rtol=1e-11)
        np.testing.assert_allclose(tape.gradient(log_mean, concentration), [slope], rtol=1e-6)


def test_ignored_entries_get_no_gradient() -> None:
    parameters = reference.random_bartlett(np.random.default_rng(4), 4, 3)
    ignored = ~np.tri(4, 3, -1, dtype=bool)
    for garbage in (0.0, -1.0, np.inf, np.nan):
        parameters["loc"][ignored] = garbage
        parameters["scale"][ignored] = garbage
        tensors = {name: tf.constant(value) for name, value in parameters.items()}
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            distribution = GeneralisedBartlett(**tensors)
            sample, log_prob = distribution.experimental_sample_and_log_prob(2, seed=[1, 2])
            total = tf.reduce_sum(sample) + tf.reduce_sum(log_prob)
            total += tf.reduce_sum(distribution.mean()) + tf.reduce_sum(distribution.variance())
        gradients = tape.gradient(total, tensors)
        for name, gradient in gradients.items():
            assert np.all(np.isfinite(gradient)), name
        for name in ("loc", "scale"):
            assert np.all(gradients[name].numpy()[ignored] == 0.0)
            assert np.all(gradients[name].numpy()[~ignored] != 0.0)
