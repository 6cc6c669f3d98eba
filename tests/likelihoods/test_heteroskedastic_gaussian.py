"""Gaussian noise whose scale is a function of the inputs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import HeteroskedasticTFPConditional
from gpflow.quadrature import NDiagGHQuadrature
from model_reference import assert_same_mean
from scipy import special, stats

from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods import HeteroskedasticGaussian

RNG = np.random.default_rng(0)
SCALE, AMPLITUDE = np.array([0.3, 1.5]), np.array([0.7, 1.2])
X = RNG.standard_normal((5, 2))
MEAN = RNG.standard_normal((5, 4))
SPREAD = RNG.uniform(0.05, 0.4, (5, 4))
Y = RNG.standard_normal((5, 2))


def make() -> HeteroskedasticGaussian:
    return HeteroskedasticGaussian(2, SCALE, AMPLITUDE)


def test_it_is_gpflows_where_that_has_it() -> None:
    """GPflow's has one output, scale and amplitude 1, and quadrature in two dimensions."""
    ours = HeteroskedasticGaussian(1, 1.0, 1.0)
    theirs = HeteroskedasticTFPConditional(quadrature=NDiagGHQuadrature(2, 100))
    at = X, MEAN[:, :2], SPREAD[:, :2]
    for name in ("variational_expectations", "predict_log_density"):
        found, expected = (getattr(each, name)(*at, Y[:, :1]) for each in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=2e-5)
    found, expected = (each.predict_mean_and_var(*at) for each in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    found, expected = (each.log_prob(X, MEAN[:, :2], Y[:, :1]) for each in (ours, theirs))
    np.testing.assert_allclose(found, expected)


def test_expectations_moments_and_quantiles_are_those_of_draws() -> None:
    """Catches scales and amplitudes of the wrong output, and nodes without their weights."""
    functions = MEAN + np.sqrt(SPREAD) * RNG.standard_normal((200_000, 5, 4))
    noise = SCALE * np.exp(AMPLITUDE * functions[..., 2:])
    each = stats.norm.logpdf(Y, functions[..., :2], noise).sum(axis=-1)
    assert_same_mean(each, make().variational_expectations(X, MEAN, SPREAD, Y), 5.0)
    samples = functions[..., :2] + noise * RNG.standard_normal(noise.shape)
    mean, variance = (part.numpy() for part in make().predict_mean_and_var(X, MEAN, SPREAD))
    assert_same_mean(samples, mean, 5.0)
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.1)
    components = [part.numpy() for part in make().warped_components(X, MEAN, SPREAD)]
    weights = make().component_weights(len(components[0]))
    distribution = PredictiveDistribution(*components, weights=weights)
    for level in (0.05, 0.5, 0.99):
        below = (samples < distribution.quantile(level)).mean(axis=0)
        np.testing.assert_allclose(below, level, atol=4e-3)
    np.testing.assert_allclose(distribution.variance(), variance, rtol=1e-6)
    density = make().predict_log_density(X, MEAN, SPREAD, Y)
    np.testing.assert_allclose(density, distribution.log_density(Y).sum(axis=1), rtol=1e-10)


def test_densities_of_outliers_are_those_of_fine_sums() -> None:
    """Catches nodes that end, or are far apart, where the noise is that outliers ask for."""
    scores = np.arange(-20.0, 50.0, 0.01)
    for deviation in (0.01, 0.1, 0.3, 1.0):
        for y in (0.0, 5.0, 50.0, 80.0):
            variance = 0.01 + np.exp(2.0 * deviation * scores)
            each = stats.norm.logpdf(y, 0.0, np.sqrt(variance)) + stats.norm.logpdf(scores)
            expected = special.logsumexp(each) + np.log(0.01)
            at = np.array([[0.0, 0.0]]), np.array([[0.01, np.square(deviation)]])
            found = HeteroskedasticGaussian(1, 1.0, 1.0).predict_log_density(X[:1], *at, [[y]])
            np.testing.assert_allclose(found, [expected], atol=1e-3)


@pytest.mark.parametrize("name", ["scale", "amplitude"])
def test_what_is_not_positive_is_refused(name: str) -> None:
    for value in (0.0, np.nan, [0.1, 0.2, 0.3]):
        with pytest.raises(ValueError, match=f"{name} must be a positive number, or 2 of them"):
            HeteroskedasticGaussian(2, **{name: value})


def test_gradient_of_a_density_where_functions_are_known() -> None:
    """Catches the root of a variance that is zero, whose gradient is NaN."""
    functions, zeros = tf.zeros([3, 2], tf.float64), tf.zeros([3, 2], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(zeros)
        density = HeteroskedasticGaussian().predict_log_density(
            zeros, functions, zeros, np.ones((3, 1))
        )
    assert np.isfinite(tape.gradient(density, zeros)).all()
