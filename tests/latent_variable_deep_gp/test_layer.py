"""A Gaussian process layer against GPflow's SVGP, and its joint draws against their covariance."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.latent_variable_deep_gp import LocalInducingGPLayer


def make_layer(num_outputs: int = 2, **arguments: object) -> LocalInducingGPLayer:
    """A layer of two inputs with a posterior away from its start."""
    rng = np.random.default_rng(0)
    kernel = gpflow.kernels.SquaredExponential(variance=1.3, lengthscales=[0.8, 1.4])
    layer = LocalInducingGPLayer(kernel, rng.normal(size=(6, 2)), num_outputs, **arguments)
    layer.q_mu.assign(rng.normal(size=layer.q_mu.shape))
    root = np.tril(0.3 * rng.normal(size=layer.q_sqrt.shape)) + 0.5 * np.eye(6)
    layer.q_sqrt.assign(root)
    return layer


@pytest.mark.parametrize("full_cov", [False, True])
def test_moments_are_those_of_svgp_for_each_of_a_batch(full_cov: bool) -> None:
    layer = make_layer()
    posterior = {"q_mu": layer.q_mu.numpy(), "q_sqrt": layer.q_sqrt.numpy()}
    likelihood, Z = gpflow.likelihoods.Gaussian(), layer.inducing_variable
    svgp = gpflow.models.SVGP(layer.kernel, likelihood, Z, num_latent_gps=2, **posterior)
    X = np.random.default_rng(1).normal(size=(2, 2, 5, 2))
    mean, variance = layer.predict(tf.constant(X), full_cov=full_cov)
    for place in np.ndindex(2, 2):
        expected_mean, expected_variance = svgp.predict_f(X[place], full_cov=full_cov)
        np.testing.assert_allclose(mean[place], expected_mean, atol=1e-5)
        np.testing.assert_allclose(variance[place], expected_variance, atol=1e-5)
    np.testing.assert_allclose(-layer.log_ratio()[0], svgp.prior_kl(), rtol=1e-10)


def test_mixing_and_skip() -> None:
    rng = np.random.default_rng(2)
    mixing = rng.normal(size=(2, 3))
    layer, plain = make_layer(2, mixing=mixing, skip=True), make_layer(3)
    X = rng.normal(size=(4, 2))
    mean, covariance = layer.predict(tf.constant(X), full_cov=True)
    g_mean, g_covariance = plain.predict(tf.constant(X), full_cov=True)
    np.testing.assert_allclose(mean, g_mean.numpy() @ mixing.T + X, atol=1e-12)
    expected = np.einsum("gtu,qg->qtu", g_covariance, mixing**2)
    np.testing.assert_allclose(covariance, expected, atol=1e-12)
    noise = tf.zeros([4, 3], tf.float64)
    np.testing.assert_allclose(layer.sample(tf.constant(X), noise, full_cov=True), mean)


@pytest.mark.parametrize("full_cov", [False, True])
def test_draws_have_the_right_covariance(full_cov: bool) -> None:
    num_draws = 40_000
    mixing = np.array([[1.0, 0.5], [0.0, 2.0]])
    layer = make_layer(2, mixing=mixing)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3, 2))
    noise = tf.constant(rng.normal(size=(num_draws, 3, 2)))
    draws = layer.sample(tf.constant(X)[None], noise, full_cov=full_cov).numpy()
    mean, covariance = make_layer(2).predict(tf.constant(X), full_cov=True)
    between_points = covariance.numpy() if full_cov else covariance.numpy() * np.eye(3)
    # Outputs p and q share processes, so they are correlated: Σ_g W_pg W_qg C_g.
    expected = np.einsum("gtu,pg,qg->tpuq", between_points, mixing, mixing).reshape(6, 6)
    empirical = np.cov(draws.reshape(num_draws, 6), rowvar=False)
    diagonal = np.diag(expected)
    sigma = np.sqrt((np.outer(diagonal, diagonal) + expected**2) / num_draws)
    assert (np.abs(empirical - expected) < 5.0 * sigma + 1e-5).all()
    error = np.abs(draws.mean(axis=0) - mean.numpy() @ mixing.T).ravel()
    assert (error < 5.0 * np.sqrt(diagonal / num_draws)).all()


def test_inputs_move_along_functions_with_the_derivative_of_expectations() -> None:
    """That of E f(x) f(x') by each input: the sum of the covariance and a product of means."""
    num_draws = 20_000
    layer = make_layer(1)
    rng = np.random.default_rng(4)
    x = tf.Variable(rng.normal(size=(2, 2)))
    noise = tf.constant(rng.normal(size=(num_draws, 2, 1)))
    with tf.GradientTape(persistent=True) as tape:
        mean, covariance = layer.predict(x, full_cov=True)
        exact = covariance[0, 0, 1] + tf.reduce_prod(mean)
        inputs = tf.tile(x[None], [num_draws, 1, 1])
        tape.watch(inputs)
        draws = layer.sample(inputs, noise, full_cov=True, fix_functions=True)
        products, first = tf.reduce_sum(tf.reduce_prod(draws, axis=1)), tf.reduce_sum(draws[:, 0])
    np.testing.assert_allclose(draws, layer.sample(x[None], noise, full_cov=True), atol=1e-6)
    gradients = tape.gradient(products, inputs).numpy()
    error = gradients.std(axis=0) / np.sqrt(num_draws)
    z = (gradients.mean(axis=0) - tape.gradient(exact, x)) / error
    assert np.abs(z).max() < 4.0, z
    np.testing.assert_array_equal(tape.gradient(first, inputs)[:, 1], 0.0)  # of a point alone
    # Those by parameters are those of the formula.
    plain = {}
    for fix_functions in (False, True):
        with tf.GradientTape() as tape:
            draws = layer.sample(x[None], noise[:5], full_cov=True, fix_functions=fix_functions)
            value = tf.reduce_sum(tf.sin(draws))
        plain[fix_functions] = tape.gradient(value, layer.trainable_variables)
    for with_fixed, of_formula in zip(plain[True], plain[False], strict=True):
        np.testing.assert_allclose(with_fixed, of_formula, rtol=1e-5, atol=1e-6)


def test_bad_arguments() -> None:
    for num_outputs, given, message in (
        (3, {"skip": True}, "num_outputs must be 2 to add inputs, got 3"),
        (2, {"mixing": np.ones((3, 2))}, "mixing must have 2 rows, got 3"),
        (2, {"q_scale": 0.0}, "q_scale must be a positive number"),
        (2, {"jitter": np.inf}, "jitter must be a finite number, got inf"),
        (2, {"mixing": np.full((2, 2), np.nan)}, "mixing holds nan in row 1, column 1"),
        (10**15, {}, "num_outputs must be smaller"),
    ):
        with pytest.raises(ValueError, match=message):
            make_layer(num_outputs, **given)
    kernel, Z = gpflow.kernels.SquaredExponential(lengthscales=[1.0, 2.0, 3.0]), np.eye(2)
    with pytest.raises(ValueError, match="SquaredExponential cannot be the first kernel"):
        LocalInducingGPLayer(kernel, Z, 1)
    with pytest.raises(ValueError, match="inducing_variable holds inf in row 2, column 2"):
        LocalInducingGPLayer(gpflow.kernels.SquaredExponential(), np.diag([1.0, np.inf]), 1)
