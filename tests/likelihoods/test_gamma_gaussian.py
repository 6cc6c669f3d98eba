"""Gamma precisions against TFP, and the likelihood against integration over τ."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from model_reference import assert_same_mean
from scipy import integrate, stats

from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.likelihoods.gamma_gaussian import GammaPrecision
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import fit


def test_moments_and_divergence_are_those_of_gamma_distributions() -> None:
    tau = GammaPrecision(6.0, 3.0)
    tau.concentration.assign(9.0)
    tau.rate.assign(2.0)
    q = tfp.distributions.Gamma(np.float64(9.0), np.float64(2.0))
    p = tfp.distributions.Gamma(np.float64(6.0), np.float64(3.0))
    draws = np.random.default_rng(0).gamma(9.0, 0.5, 400_000)

    np.testing.assert_allclose(tau.kl_divergence(), q.kl_divergence(p))
    np.testing.assert_allclose(tau.mean, 4.5)
    assert_same_mean(np.log(draws), tau.mean_log, 4.0)
    assert_same_mean(1.0 / draws, tau.mean_inverse, 4.0)
    with pytest.raises(ValueError, match="prior_rate must be a positive number"):
        GammaPrecision(1.0, 0.0)


@pytest.mark.usefixtures("eager")
def test_a_precision_of_an_unknown_count_is_learned() -> None:
    """Catches its best rate taken as of a count that it has not."""
    X = np.linspace(-1.0, 1.0, 20)[:, None]
    likelihood = GammaGaussian()
    model = build_deep_wishart_process((X, np.sin(3.0 * X)), 1, likelihood=likelihood)
    fit(model, (X, np.sin(3.0 * X)), 3, progress=False)
    assert np.isfinite(likelihood.precision.rate) and likelihood.precision.rate != 6.0


def test_expected_log_likelihood_is_an_integral_over_function_and_precision() -> None:
    likelihood = GammaGaussian(6.0, 3.0)
    likelihood.precision.concentration.assign(9.0)
    likelihood.precision.rate.assign(2.0)
    X, Y = np.zeros((1, 1)), np.array([[0.7, -1.0]])
    mean, variance = np.array([[0.2, 0.1]]), np.array([[0.4, 0.9]])
    rng = np.random.default_rng(1)
    tau = rng.gamma(9.0, 0.5, (400_000, 1))
    f = mean + np.sqrt(variance) * rng.normal(size=(400_000, 2))
    draws = (0.5 * np.log(tau / (2.0 * np.pi)) - 0.5 * tau * (Y - f) ** 2).sum(axis=1)

    value = likelihood.variational_expectations(X, mean, variance, Y)[0]

    assert_same_mean(draws, value, 4.0)


@pytest.mark.parametrize("concentration", [3.2, 9.0, 233.5])
@pytest.mark.parametrize("variance", [0.0, 1e-3, 0.4])
@pytest.mark.parametrize("residuals", [[0.1], [3.0], [60.0], [2.0, -15.0]])
def test_predictive_density_is_the_integral_over_the_precision(
    concentration: float, variance: float, residuals: list[float]
) -> None:
    """Catches a Gaussian of the mean variance, off by 4 to 32 nats for outliers at a = 9."""
    likelihood = GammaGaussian()
    likelihood.precision.concentration.assign(concentration)
    likelihood.precision.rate.assign(concentration / 1.7)
    Y = np.array([residuals])

    grid = np.linspace(-25.0, 8.0, 4_001)
    tau = np.exp(grid)
    prior = stats.gamma.logpdf(tau, concentration, scale=1.7 / concentration) + grid
    deviation = np.sqrt(variance + 1.0 / tau)[:, None]
    values = prior + stats.norm.logpdf(Y, 0.0, deviation).sum(axis=1)
    expected = np.log(integrate.simpson(np.exp(values - values.max()), x=grid)) + values.max()

    zeros, variances = np.zeros_like(Y), np.full_like(Y, variance)
    value = likelihood.predict_log_density(np.zeros((1, 1)), zeros, variances, Y)
    np.testing.assert_allclose(value, [expected], atol=1e-6)
    if not variance:
        np.testing.assert_allclose(likelihood.log_prob(np.zeros((1, 1)), zeros, Y), value)


def test_densities_of_many_observations_are_right_in_float32() -> None:
    """Catches a difference of logarithms of Gamma functions that is lost: .035 nats a row."""
    found = []
    for dtype in (np.float32, np.float64):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            likelihood, Y = GammaGaussian(num_observations=1e5), np.array([[0.3], [3.0]], dtype)
            found.append(likelihood.log_prob(Y, np.zeros_like(Y), Y))
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_the_best_posterior_has_half_the_count_more() -> None:
    """Catches a wrong closed form: at a = a₀ + n/2, b = b₀ + ½ E Σ (y - f)² no gradient is left."""
    rng = np.random.default_rng(2)
    Y, mean, variance = rng.normal(size=(7, 2)), rng.normal(size=(7, 2)), np.full((7, 2), 0.3)
    likelihood = GammaGaussian(6.0, 3.0, Y.size)
    assert float(likelihood.precision.mean) == pytest.approx(2.0)
    likelihood.precision.rate.assign(3.0 + 0.5 * np.sum((Y - mean) ** 2 + variance))
    assert likelihood.trainable_parameters == (likelihood.precision.rate,)
    variables = [
        parameter.unconstrained_variable
        for parameter in (likelihood.precision.concentration, likelihood.precision.rate)
    ]

    with tf.GradientTape() as tape:
        tape.watch(variables)
        expected = likelihood.variational_expectations(np.zeros((7, 1)), mean, variance, Y)
        bound = tf.reduce_sum(expected) - likelihood.kl_divergence()

    np.testing.assert_allclose(tape.gradient(bound, variables), [0.0, 0.0], atol=1e-10)


def test_columns_of_a_row_share_their_precision() -> None:
    """Catches densities of a distribution that are products where the precision is shared."""
    likelihood, zeros = GammaGaussian(), np.zeros((1, 2))
    Y, variance = np.array([[4.0, -5.0]]), np.array([[0.3, 0.6]])
    components = [part.numpy() for part in likelihood.warped_components(zeros, zeros, variance)]
    weights = likelihood.component_weights(len(components[0]))
    distribution = PredictiveDistribution(*components, weights=weights)
    joint = likelihood.predict_log_density(zeros, zeros, variance, Y)
    np.testing.assert_allclose(distribution.joint_log_density(Y, 1, 0.0), joint, rtol=1e-10)
