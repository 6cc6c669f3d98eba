"""Deep GPs with latent variables: limits with exact answers, gradients, GPflow's contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import (
    GivenEncoder,
    assert_gradients_are_finite_differences,
    assert_same_mean,
    randomise,
    toy_data,
)
from scipy import stats

from gpflow_dwp import fit
from gpflow_dwp.latent_variable_deep_gp import (
    LatentVariableDeepGP,
    LatentVariableLayer,
    LocalInducingGPLayer,
    build_latent_variable_deep_gp,
)
from gpflow_dwp.latent_variable_deep_gp.latent_variable import RowEncoder
from gpflow_dwp.models import load_model, save_model
from gpflow_dwp.random import as_seed

NOISE, SLOPE = 0.4, 1.5
LINEAR = np.zeros((3, 1)), np.array([[-1.0], [0.3], [2.0]])


def make_model(architecture: str, **arguments: object) -> LatentVariableDeepGP:
    """A model of the toy data with random parameters."""
    given = {"num_inducing": 5, "num_functions": 2, **arguments}
    model = build_latent_variable_deep_gp(toy_data(), architecture, **given)
    randomise(model, seed=1, scale=0.1)
    return model


def linear_model(num_samples: int, encoder: Any, num_data: int = 3, doubly: bool = False) -> Any:
    """y = 1.5 w + noise: what is drawn for each datum is linear, and the function is known."""
    kernel = gpflow.kernels.Linear(active_dims=[1])
    output = LocalInducingGPLayer(kernel, np.array([[0.0, 1.0]]), 1, q_scale=1e-9, jitter=1e-12)
    output.q_mu.assign([[SLOPE]])
    layers = [LatentVariableLayer(encoder, doubly_reparameterised=doubly), output]
    likelihood = gpflow.likelihoods.Gaussian(variance=NOISE)
    return LatentVariableDeepGP(layers, likelihood, num_data, num_samples)


def exact_posterior(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each w given its y."""
    precision = 1.0 + SLOPE**2 / NOISE
    return SLOPE * Y / NOISE / precision, np.full(Y.shape, precision**-0.5)


def exact_evidence(Y: np.ndarray) -> float:
    """The log marginal likelihood of :func:`linear_model`."""
    return float(stats.norm.logpdf(Y, scale=np.sqrt(SLOPE**2 + NOISE)).sum())


def bound_without_functions(model: LatentVariableDeepGP, K: int) -> float:
    """The bound, but for the divergence of the function."""
    terms = model.elbo_terms(LINEAR, num_importance_samples=K, seed=0)
    return float(terms.data + terms.log_ratios[0])


def test_one_layer_is_svgp() -> None:
    X, Y = toy_data()
    model = make_model("GP")
    layer = model.output_layer
    posterior = {"q_mu": layer.q_mu.numpy(), "q_sqrt": layer.q_sqrt.numpy(), "num_data": len(X)}
    parts = layer.kernel, model.likelihood, layer.inducing_variable
    svgp = gpflow.models.SVGP(*parts, **posterior)
    np.testing.assert_allclose(model.elbo((X, Y)), svgp.elbo((X, Y)), rtol=1e-6)
    half = (X[:5], Y[:5])
    np.testing.assert_allclose(model.elbo(half), svgp.elbo(half), rtol=1e-6)
    for own, other in zip(model.predict_y(X), svgp.predict_y(X), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    own, other = (each.predict_log_density((X, Y)) for each in (model, svgp))
    np.testing.assert_allclose(own, other, atol=1e-6)
    own, other = (each.predict_f(X, full_cov=True)[1] for each in (model, svgp))
    np.testing.assert_allclose(own, other, atol=1e-6)


def test_bound_grows_with_the_number_of_importance_samples_up_to_the_evidence() -> None:
    model = linear_model(4_000, GivenEncoder(np.zeros((3, 1)), np.full((3, 1), 0.8)))
    bounds = [bound_without_functions(model, K) for K in (1, 2, 5, 20, 200)]
    assert np.all(np.diff(bounds) > 0.0), bounds
    evidence = exact_evidence(LINEAR[1])
    assert evidence - 0.05 < bounds[-1] < evidence + 0.01


def test_more_importance_samples_make_a_difference_to_latent_variables_alone() -> None:
    """Catches functions that are drawn for each copy, where a datum's copies share one."""
    for architecture in ("GP-GP", "GP-LV-GP"):
        model = make_model(architecture)
        model.num_samples = 1_000
        one, many = (model.elbo(toy_data(), num_importance_samples=K, seed=0) for K in (1, 8))
        if architecture == "GP-GP":
            np.testing.assert_allclose(many, one, rtol=1e-10)
        else:
            assert many > one


def test_minibatches_and_single_draws_are_unbiased() -> None:
    """Catches a scale of minibatches, or of draws, within the logarithm of the weights."""
    X, Y = toy_data(num=12)
    model = build_latent_variable_deep_gp((X, Y), "LV-GP-GP", num_inducing=5)
    model.likelihood.variance.assign(0.5)

    def term(X: Any, Y: Any, seed: tf.Tensor) -> tf.Tensor:
        return model.elbo_terms((X, Y), num_importance_samples=3, seed=seed).data

    @tf.function(autograph=False)
    def terms(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        seeds = tf.range(300, dtype=tf.int64)
        return tf.map_fn(lambda seed: term(X, Y, seed), seeds, fn_output_signature=tf.float64)

    model.num_samples = 200
    expected = np.array([term(X, Y, as_seed(number)) for number in range(8)])
    model.num_samples = 1
    of_halves = [terms(*(tf.constant(part[half::2]) for part in (X, Y))) for half in range(2)]
    assert_same_mean(np.mean(of_halves, axis=0), expected, 4.0)


def test_gradients_of_the_encoder_are_those_of_finite_differences() -> None:
    data = toy_data()
    model = make_model("LV-GP-GP", num_samples=2)

    def bound() -> tf.Tensor:
        return model.elbo(data, num_importance_samples=3, seed=0)

    parameters = [*model.layers[0].encoder.weights, *model.layers[0].encoder.biases]
    variables = [parameter.unconstrained_variable for parameter in parameters]
    assert_gradients_are_finite_differences(bound, variables, rel=1e-4)


def test_doubly_reparameterised_gradients_have_the_mean_of_plain_ones_and_less_noise() -> None:
    """Signal by noise of the encoder's gradient falls with K, and doubly reparameterised grows; at
    the exact posterior there is no noise. Each of 3,000 rows has a gradient of its own."""
    count = 1_000
    Y = np.repeat(LINEAR[1], count, axis=0)
    mean, scale = exact_posterior(Y)

    def gradients(doubly: bool, K: int, encoder: GivenEncoder) -> np.ndarray:
        model = linear_model(1, encoder, len(Y), doubly=doubly)
        with tf.GradientTape() as tape:
            tape.watch([encoder.mean, encoder.scale])
            bound = model.elbo((np.zeros(Y.shape), Y), num_importance_samples=K, seed=0)
        parts = tape.gradient(bound, [encoder.mean, encoder.scale])
        return np.stack([part.numpy().reshape(3, count) for part in parts])

    plain, doubly = (
        [gradients(flag, K, GivenEncoder(mean + 0.2, scale + 0.3)) for K in (2, 16, 128)]
        for flag in (False, True)
    )
    for first, second in zip(plain, doubly, strict=True):
        differences = second - first
        error = differences.std(axis=-1) / np.sqrt(count)
        assert np.all(np.abs(differences.mean(axis=-1)) < 4.0 * error)
    of_plain, of_doubly = (
        [np.abs(each.mean(axis=-1)).sum() / each.std(axis=-1).sum() for each in found]
        for found in (plain, doubly)
    )
    assert np.all(np.diff(of_plain) < 0.0) and np.all(np.diff(of_doubly) > 0.0)
    assert doubly[-1].std() < 0.2 * plain[-1].std()
    assert np.abs(gradients(True, 4, GivenEncoder(mean, scale))).max() < 1e-4
    assert np.abs(gradients(False, 4, GivenEncoder(mean, scale))).max() > 0.1


def test_functions_above_latent_variables_are_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For doubly reparameterised gradients, where a copy's weight would depend on other copies'."""
    asked: list[bool] = []

    def sample(*arguments: Any, fix_functions: bool, **options: Any) -> tf.Tensor:
        asked.append(fix_functions)
        return plain(*arguments, fix_functions=fix_functions, **options)

    plain = LocalInducingGPLayer.sample
    monkeypatch.setattr(LocalInducingGPLayer, "sample", sample)
    for architecture, doubly in (("GP-LV-GP-GP", True), ("LV-GP-GP", False)):
        model = make_model(architecture, doubly_reparameterised=doubly)
        for K in (2, 1):
            model.elbo(toy_data(), num_importance_samples=K)
    assert asked == [False, True, False, False, False, False]


def test_parameters_of_each_row_reach_the_exact_posterior() -> None:
    """In minibatches of two of three rows, whose order changes."""
    X, Y = LINEAR
    encoder = RowEncoder(X, Y)
    model = linear_model(1, encoder, doubly=True)
    gpflow.set_trainable(model.layers[1], False)
    gpflow.set_trainable(model.likelihood, False)
    encoder.scale.assign(np.full((3, 1), 0.9))
    fit(model, (X, Y), 600, batch_size=2, num_importance_samples=4, progress=False)
    for found, expected in zip((encoder.mean, encoder.scale), exact_posterior(Y), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_allclose(bound_without_functions(model, 4), exact_evidence(Y), rtol=1e-4)


def test_predictive_density_is_that_of_quadrature() -> None:
    X, Y = toy_data()
    model = make_model("LV-GP")
    output = model.output_layer
    output.kernel.lengthscales.assign([1.4, 1.4, 0.5])
    model.likelihood.variance.assign(0.1)
    num_samples = 20_000
    densities = np.exp(model.predict_log_density((X, Y), num_samples=num_samples).numpy())
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    inputs = np.concatenate([np.repeat(X, 60, axis=0), np.tile(nodes, len(X))[:, None]], axis=1)
    mean, variance = output.predict(tf.constant(inputs), full_cov=False)
    deviation = np.sqrt(variance.numpy() + 0.1)
    each = stats.norm.pdf(np.repeat(Y, 60, axis=0), mean.numpy(), deviation).reshape(len(X), 60)
    expected = each @ weights
    sigma = np.sqrt((each**2) @ weights - expected**2) / np.sqrt(num_samples)
    assert (np.abs(densities - expected) < 5.0 * sigma + 1e-8).all()


def test_contract(tmp_path: Path) -> None:
    X, Y = toy_data()
    model = make_model("GP-LV-GP", latent_dim=2, encoder="rows", doubly_reparameterised=True)
    mean, variance = model.predict_f(X, num_samples=7)
    assert mean.shape == variance.shape == (12, 1)
    # Neither the batch nor its order matters.
    np.testing.assert_allclose(model.predict_f(X[::-1][:5], num_samples=7)[0], mean[::-1][:5])
    assert model.predict_f(X, full_cov=True, num_samples=7)[1].shape == (1, 12, 12)
    assert model.predict_f_samples(X, 3).shape == (3, 12, 1)
    assert model.predict_f_samples(X, 3, full_cov=False).shape == (3, 12, 1)
    assert model.training_loss((X, Y)).shape == ()
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_f(X, num_samples=7)[0], mean)
    options = {"num_importance_samples": 2, "seed": 0}
    np.testing.assert_array_equal(again.elbo((X, Y), **options), model.elbo((X, Y), **options))


def test_bad_arguments() -> None:
    data = toy_data()
    for architecture in ("", "LV", "GP-LV", "GP-DWP"):
        with pytest.raises(ValueError, match="architecture must be"):
            build_latent_variable_deep_gp(data, architecture)
    with pytest.raises(ValueError, match="encoder must be"):
        build_latent_variable_deep_gp(data, encoder="row")
    latent, hidden, output = make_model("LV-GP-GP").layers
    for layers, message in (
        ([latent], "must end in a LocalInducingGPLayer"),
        ([latent, hidden], "neither mixing nor skip"),
        ([hidden, latent, output], "but 4 come from below"),
    ):
        with pytest.raises(ValueError, match=message):
            LatentVariableDeepGP(layers, gpflow.likelihoods.Gaussian(), 12)


def test_hidden_layers_are_mixed_by_the_principal_components_of_the_inputs() -> None:
    """Catches components of inputs beside random draws, which follow the seed."""
    inputs = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 5.0, 2.0]
    data = (inputs, inputs[:, :1])
    given = {"num_inducing": 5, "num_functions": 4}
    models = [build_latent_variable_deep_gp(data, "LV-GP-GP", seed=s, **given) for s in range(2)]
    first, second = (model.layers[1].mixing.numpy() for model in models)
    np.testing.assert_array_equal(first, second)
    covariance = first[:3, :3].T @ np.cov(inputs.T) @ first[:3, :3]
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    assert np.all(np.diff(np.diag(covariance)) < 0.0)
    np.testing.assert_array_equal(first[:, 3], [0.0, 0.0, 0.0, 1.0])
