"""Gamma precisions against TFP, and the likelihood against integration over τ."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow_probability as tfp

from gpflow_dwp.likelihoods import GammaGaussian, GammaPrecision


def precision() -> GammaPrecision:
    result = GammaPrecision(6.0, 3.0)
    result.concentration.assign(9.0)
    result.rate.assign(2.0)
    return result


def test_moments_and_divergence_are_those_of_gamma_distributions() -> None:
    tau = precision()
    q = tfp.distributions.Gamma(np.float64(9.0), np.float64(2.0))
    p = tfp.distributions.Gamma(np.float64(6.0), np.float64(3.0))
    draws = np.random.default_rng(0).gamma(9.0, 0.5, 400_000)

    np.testing.assert_allclose(tau.kl_divergence(), q.kl_divergence(p))
    np.testing.assert_allclose(tau.mean, 4.5)
    for value, sample in ((tau.mean_log, np.log(draws)), (tau.mean_inverse, 1.0 / draws)):
        assert abs(float(value) - sample.mean()) < 4.0 * sample.std() / np.sqrt(len(draws))


def test_bad_priors_are_refused() -> None:
    with pytest.raises(ValueError, match="prior_rate must be a positive number"):
        GammaPrecision(1.0, 0.0)


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

    value = float(likelihood.variational_expectations(X, mean, variance, Y)[0])

    assert abs(value - draws.mean()) < 4.0 * draws.std() / np.sqrt(len(draws))
