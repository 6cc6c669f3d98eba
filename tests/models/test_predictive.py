"""Moments of mixtures, and likelihoods under draws."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.likelihoods import GammaGaussian, SinhArcsinh, WarpedGaussian
from gpflow_dwp.models.predictive import (
    expected_log_likelihoods,
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
)
from gpflow_dwp.random import as_seed

S, N, Q = 3, 4, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 1))
Y = RNG.normal(size=(N, Q))
MEAN = RNG.normal(size=(S, N, Q))
VARIANCE = RNG.uniform(0.5, 1.5, size=(S, N))


@pytest.mark.parametrize("full_cov", [False, True])
def test_mixture_moments_entry_by_entry(full_cov: bool) -> None:
    root = RNG.normal(size=(S, N, N))
    covariances = root @ root.swapaxes(1, 2) if full_cov else VARIANCE
    expected = np.zeros((Q, N, N))
    for s in range(S):
        within = covariances[s] if full_cov else np.diag(covariances[s])
        deviation = MEAN[s] - MEAN.mean(0)
        for q, n, m in np.ndindex(Q, N, N):
            expected[q, n, m] += (within[n, m] + deviation[n, q] * deviation[m, q]) / S

    given = tf.constant(MEAN), tf.constant(covariances)
    mean, covariance = mixture_moments(*given, full_cov=full_cov)

    np.testing.assert_allclose(mean, MEAN.mean(0))
    expected = expected if full_cov else np.einsum("qnn->nq", expected)
    np.testing.assert_allclose(covariance, expected, atol=1e-12)


def arguments(mean: np.ndarray = MEAN) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.constant(mean), tf.constant(VARIANCE)


def test_softmax_integrates_the_same_numbers_at_the_same_point_in_any_batch() -> None:
    likelihood = gpflow.likelihoods.Softmax(Q)
    labels = tf.constant([[0], [1], [1], [0]])
    seed = as_seed(3)
    mean, variance = predictive_moments(likelihood, tf.constant(X), *arguments(), seed=seed)
    given = tf.constant(X), labels, *arguments()
    densities = predictive_log_densities(likelihood, *given, seed=seed)
    rows = [2, 0]
    X_rows, moments = tf.constant(X[rows]), [part.numpy()[:, rows] for part in arguments()]
    again = predictive_moments(likelihood, X_rows, *map(tf.constant, moments), seed=seed)
    np.testing.assert_allclose(again[0], mean.numpy()[:, rows], atol=1e-12)
    np.testing.assert_allclose(again[1], variance.numpy()[:, rows], atol=1e-12)
    # The density of a label is its probability, from the same numbers.
    probabilities = np.take_along_axis(mean.numpy(), labels.numpy()[None], axis=2)[..., 0]
    np.testing.assert_allclose(np.exp(densities), probabilities, atol=1e-12)
    other = predictive_moments(likelihood, tf.constant(X), *arguments(), seed=as_seed(4))
    # 100 numbers for each integral of a probability: 5 sigma.
    assert 0.0 < np.abs(other[0] - mean).max() < 5.0 * np.sqrt(2.0) * 0.5 / np.sqrt(100.0)


MISSING = np.array([[False, False], [True, False], [False, True], [True, True]])

ENTRIES = {
    "Gaussian": (lambda: gpflow.likelihoods.Gaussian([0.3, 0.7]), Y),
    "warped": (lambda: WarpedGaussian(SinhArcsinh(2, skewness=[0.5, -0.2]), [0.3, 0.7]), Y),
    "Student's t": (gpflow.likelihoods.StudentT, Y),
    "Poisson": (gpflow.likelihoods.Poisson, np.round(np.exp(Y))),
    "Beta": (gpflow.likelihoods.Beta, 1.0 / (1.0 + np.exp(-Y))),
    "Ordinal": (lambda: gpflow.likelihoods.Ordinal(np.arange(-1.0, 2.0)), np.full((N, Q), 2.0)),
}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("method", [expected_log_likelihoods, predictive_log_densities])
def test_missing_entries_add_nothing(name: str, method: Any) -> None:
    """Against quadrature over the one function whose observation is there."""
    make, observed = ENTRIES[name]
    likelihood = make()
    incomplete = np.where(MISSING, np.nan, observed)

    values, whole = (
        method(likelihood, X, tf.constant(Y), *arguments()) for Y in (incomplete, observed)
    )

    np.testing.assert_allclose(values[:, 0], whole[:, 0], rtol=1e-12)
    np.testing.assert_allclose(values[:, 3], 0.0, atol=1e-12)
    for row, column in ((1, 1), (2, 0)):
        nodes, weights = np.polynomial.hermite_e.hermegauss(100)
        f = MEAN[:, row, column] + np.sqrt(VARIANCE[:, row]) * nodes[:, None]
        F, y = np.zeros((f.size, Q)), np.ones((f.size, Q))
        F[:, column], y[:, column] = f.ravel(), observed[row, column]
        densities = likelihood._scalar_log_prob(np.zeros((f.size, 1)), F, tf.constant(y)).numpy()
        densities = densities[:, column].reshape(f.shape)
        if method is predictive_log_densities:
            expected = np.log(weights @ np.exp(densities) / weights.sum())
        else:
            expected = weights @ densities / weights.sum()
        np.testing.assert_allclose(values[:, row], expected, rtol=2e-3)


def test_a_seed_fixes_the_numbers_of_each_row_in_any_batch() -> None:
    """Catches bounds that are another function at every call, and one number for all rows."""
    given = [np.concatenate([part, part], axis=-2) for part in (X, np.zeros((N, 1)), MEAN)]
    variance = tf.constant(np.concatenate([VARIANCE, VARIANCE], axis=1))
    given = [*map(tf.constant, given), variance]
    likelihood = gpflow.likelihoods.Softmax(Q)
    values, same, other = (
        expected_log_likelihoods(likelihood, *given, seed=as_seed(seed)).numpy()
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(values, same)
    np.testing.assert_allclose(values[:, :N], values[:, N:], rtol=1e-12)
    assert np.all(values != other)
    copies = [tf.repeat(part, 2, axis=1) for part in (given[2], variance)]
    pairs = expected_log_likelihoods(likelihood, *given[:2], *copies, 2, seed=as_seed(0))
    assert np.all(pairs[..., 0] != pairs[..., 1])


@pytest.mark.parametrize("likelihood", [gpflow.likelihoods.Softmax(2), GammaGaussian()])
def test_rows_without_observations_add_nothing(likelihood: Any) -> None:
    labels = tf.constant([[0.0], [np.nan], [1.0], [np.nan]], tf.float64)
    mean = MEAN if likelihood.latent_dim else MEAN[..., :1]

    values = expected_log_likelihoods(likelihood, X, labels, *arguments(mean))

    assert np.all(values.numpy()[:, [1, 3]] == 0.0)
    assert np.all(values.numpy()[:, [0, 2]] < 0.0)


def test_gradients_pass_missing_entries() -> None:
    """Catches the gradient at a variance of zero, which is infinite."""
    likelihood, variance = gpflow.likelihoods.StudentT(), tf.constant(VARIANCE)
    incomplete = tf.constant(np.where(MISSING, np.nan, Y))

    with tf.GradientTape() as tape:
        tape.watch(variance)
        values = expected_log_likelihoods(likelihood, X, incomplete, tf.constant(MEAN), variance)

    by_variance, by_scale = tape.gradient(
        values, [variance, likelihood.scale.unconstrained_variable]
    )
    assert np.all(by_variance.numpy()[:, :3] != 0.0)
    assert np.all(by_variance.numpy()[:, 3] == 0.0)
    assert np.isfinite(by_scale)
