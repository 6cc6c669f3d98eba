"""The output layer that regresses on all data, against dense formulas and GPflow's SGPR."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.layers.propagation import sample_inducing_path
from gpflow_dwp.models import build_deep_wishart_process, model_from_bytes, model_to_bytes
from gpflow_dwp.random import as_seed
from gpflow_dwp.selection import leave_one_out

NOISE = 0.3


def test_one_layer_is_sgpr() -> None:
    data = toy_data(num=20, num_outputs=2)
    likelihood = gpflow.likelihoods.Gaussian(NOISE)
    model = build_deep_wishart_process(
        data, 1, num_inducing=5, output="regression", likelihood=likelihood
    )
    kernel, Z = model.output_layer.kernel, model.inducing_variable.Z.numpy()
    kernel.lengthscales.assign([0.7, 1.9])
    exact = gpflow.models.SGPR(data, kernel, Z, noise_variance=NOISE)

    np.testing.assert_allclose(model.elbo(data), exact.elbo(), rtol=1e-8)
    Xnew = toy_data(num=5)[0] + 0.3
    for ours, theirs in zip(model.predict_f(Xnew), exact.predict_f(Xnew), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("num_inputs", "variance", "lengthscale", "noise_variance"),
    [(1, 1.0, 1.0, 1e-4), (1, 1e3, 15.0, 1e-2), (3, 30.0, 5.0, 1e-4)],
)
def test_little_noise_takes_no_digits(
    num_inputs: int, variance: float, lengthscale: float, noise_variance: float
) -> None:
    """K + K_ic K_ci/σ² has condition numbers of 1e15 and more here."""
    X = np.random.default_rng(0).normal(size=(300, num_inputs))
    data = X, np.sin(2.0 * X[:, :1])
    model = build_deep_wishart_process(
        data,
        1,
        num_inducing=50,
        output="regression",
        kernel=[gpflow.kernels.SquaredExponential(variance, [lengthscale] * num_inputs)],
        likelihood=gpflow.likelihoods.Gaussian(noise_variance),
    )
    layer, Z = model.output_layer, model.inducing_variable.Z
    layer.noise_variance.assign(noise_variance)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-6 * variance)):
        exact = gpflow.models.SGPR(data, layer.kernel, Z.numpy(), noise_variance=noise_variance)
        expected = float(exact.elbo())

    noises = layer.noise_variance, model.likelihood.variance
    variables = [parameter.unconstrained_variable for parameter in noises]
    with tf.GradientTape() as tape:
        bound = model.elbo(data, seed=0)
    of_posterior, of_likelihood = tape.gradient(bound, variables)
    Z.assign(Z.numpy()[::-1])

    np.testing.assert_allclose(bound, expected, rtol=1e-6)
    np.testing.assert_allclose(model.elbo(data, seed=0), bound, rtol=1e-6)
    # This posterior is the optimal one.
    assert abs(of_posterior) < 1e-6 * abs(of_likelihood)


def test_next_to_no_noise_leaves_means_within_their_deviations() -> None:
    """Catches weights of which rounding makes 33 deviations: of 200 points, whose covariance has a
    condition number of 1e15 with the noise."""
    X, Xnew = (np.random.default_rng(0).uniform(-1.0, 1.0, (n, 1)) for n in (200, 40))
    kernel = gpflow.kernels.SquaredExponential(3e3, 0.3)
    given = {"kernel": kernel, "output": "regression", "jitter": 1e-12, "num_inducing": 200}
    model = build_deep_wishart_process((X, np.sin(8.0 * X)), 1, **given)
    model.output_layer.noise_variance.assign(1e-9)
    mean, variance = model.predict_f(Xnew)
    assert np.max(np.abs(mean - np.sin(8.0 * Xnew)) / np.sqrt(variance)) < 0.1


@pytest.mark.parametrize("build", ["wishart", "gaussian"])
def test_the_data_are_taken_at_their_expected_features(build: str) -> None:
    X, Y = data = toy_data()
    model = tiny_model(2, build, data=data, output="regression", jitter=0.0)
    (hidden,), output = model.hidden_layers, model.output_layer
    Z = model.inducing_variable.Z.numpy()

    path = sample_inducing_path([hidden], output, tf.constant(Z), 2, as_seed(0))

    interpolation = np.linalg.solve(hidden.kernel(Z).numpy(), hidden.kernel(Z, X).numpy()).T
    for s in range(2):
        features = path.hidden[0].features[s].numpy()
        K = output.kernel(features)[None]
        cross = output.kernel(features, interpolation @ features)[None]
        expected = output.infer_inducing(K, cross)
        np.testing.assert_allclose(path.output.weights[s], expected.weights[0], rtol=1e-6)
        np.testing.assert_allclose(path.output.log_ratio[s], expected.log_ratio[0], rtol=1e-6)


def test_functions_with_kernels_of_their_own_are_processes_of_what_was_observed() -> None:
    """Against GPflow's GPR of each; catches missing targets that count, and mixed up noises."""
    X, Y = toy_data(num_outputs=3)
    Y[:3, 0] = Y[6:, 2] = np.nan
    kernels = [gpflow.kernels.Matern32(lengthscales=0.7 + i) for i in range(3)]
    noise = np.array([0.1, 0.2, 0.05])
    model = build_deep_wishart_process(
        (X, Y),
        1,
        num_inducing=len(X),
        kernel=[gpflow.kernels.SeparateIndependent(kernels)],
        likelihood=gpflow.likelihoods.Gaussian(noise),
        jitter=1e-10,
    )
    assert isinstance(model.output_layer, RegressionGPLayer)
    model.output_layer.noise_variance.assign(noise)
    model = model_from_bytes(model_to_bytes(model))
    Xnew = toy_data(3, seed=5)[0]
    mean, variance = model.predict_f(Xnew)
    left_out, evidence = leave_one_out(model, 1), 0.0
    for i, kernel in enumerate(kernels):
        seen = ~np.isnan(Y[:, i])
        rows = X[seen], Y[seen, i, None]
        exact = gpflow.models.GPR(rows, kernel, noise_variance=noise[i])
        evidence += exact.log_marginal_likelihood()
        for ours, theirs in zip((mean, variance), exact.predict_f(Xnew), strict=True):
            np.testing.assert_allclose(ours[:, i, None], theirs, atol=1e-6)
        others = gpflow.models.GPR(
            (rows[0][1:], rows[1][1:]), kernel, noise_variance=noise[i]
        ).predict_y(rows[0][:1])
        row = np.flatnonzero(seen)[0]
        found = left_out.mean()[row, i], left_out.variance()[row, i]
        np.testing.assert_allclose(found, np.ravel(others), atol=1e-6)
    np.testing.assert_allclose(model.elbo((X, Y)), evidence, rtol=1e-6)


@pytest.mark.parametrize("trained", [True, False])
def test_precisions_of_other_rows_are_trained_only_if_those_before_were(trained: bool) -> None:
    layer = RegressionGPLayer(
        gpflow.kernels.SquaredExponential(), 4, *toy_data(), precisions=np.full(12, 2.0)
    )
    gpflow.set_trainable(layer.precisions, trained)

    layer.set_rows(*toy_data(6))

    assert layer.precisions.trainable == trained
    np.testing.assert_array_equal(layer.precisions, np.ones(6))
