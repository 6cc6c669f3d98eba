"""Gaussian noise in a function of the observations."""

from __future__ import annotations

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian

RNG = np.random.default_rng(0)
N = 6
X, Y, MEAN = (RNG.normal(size=(N, columns)) for columns in (2, 2, 2))
VARIANCE = RNG.uniform(0.1, 1.0, (N, 2))
NOISE = 0.3


def test_without_a_warp_it_is_gpflows() -> None:
    warped, plain = WarpedGaussian(SinhArcsinh(2), NOISE), gpflow.likelihoods.Gaussian(NOISE)

    for name, arguments in (
        ("variational_expectations", (X, MEAN, VARIANCE, Y)),
        ("predict_log_density", (X, MEAN, VARIANCE, Y)),
        ("predict_mean_and_var", (X, MEAN, VARIANCE)),
        ("conditional_mean", (X, MEAN)),
        ("conditional_variance", (X, MEAN)),
    ):
        ours, theirs = (getattr(each, name)(*arguments) for each in (warped, plain))
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_moments_and_expectations_are_those_of_draws() -> None:
    warp = SinhArcsinh(2, skewness=0.5, tailweight=0.7, location=-0.4, scale=0.8)
    likelihood = WarpedGaussian(warp, NOISE)
    rng, count = np.random.default_rng(1), 200_000
    functions = MEAN + np.sqrt(VARIANCE) * rng.standard_normal((count, N, 2))
    noisy = functions + np.sqrt(NOISE) * rng.standard_normal(functions.shape)
    samples = warp.inverse(tf.constant(noisy)).numpy()
    values = likelihood.log_prob(np.broadcast_to(X, (count, *X.shape)), functions, Y)

    mean, variance = likelihood.predict_mean_and_var(X, MEAN, VARIANCE)
    expectation = likelihood.variational_expectations(X, MEAN, VARIANCE, Y)

    model_reference.assert_same_mean(samples, mean, 5.0)
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.05)
    model_reference.assert_same_mean(values, expectation, 5.0)


def test_a_single_layer_is_a_regression_on_warped_observations() -> None:
    """Catches targets of the output layer that are not warped along, and a missing Jacobian."""
    inputs = RNG.uniform(-1.0, 1.0, (60, 1))
    targets = np.exp(1.5 * (np.sin(3.0 * inputs) + 0.1 * RNG.standard_normal(inputs.shape)))
    data = inputs, (targets - targets.mean()) / targets.std()
    model = build_deep_wishart_process(data, 1, num_inducing=15, likelihood="warped")
    warp = model.likelihood.warp
    warp.tailweight.assign([0.5])
    warp.skewness.assign([0.4])
    warped = data[0], warp.forward(tf.constant(data[1]))
    kernel, Z = model.output_layer.kernel, model.inducing_variable.Z.numpy()
    variance = model.likelihood.variance.numpy()
    sparse = gpflow.models.SGPR(warped, kernel, Z, noise_variance=variance)

    bound = model.elbo(data, seed=0)

    volume = tf.reduce_sum(warp.log_derivative(tf.constant(data[1])))
    np.testing.assert_allclose(bound, sparse.elbo() + volume, rtol=1e-5)
    parts = model.posterior(1, seed=0).predict_warped_components(data[0])
    moments = [part[0] for part in parts]
    np.testing.assert_allclose(moments, sparse.predict_y(data[0]), rtol=1e-4, atol=1e-6)


def test_what_is_no_warp_is_refused() -> None:
    with pytest.raises(ValueError, match="warp must be"):
        WarpedGaussian(tf.sinh)
