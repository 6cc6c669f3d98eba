"""Doubly reparameterised gradients: expectation, variance, and what they leave alone."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import assert_same_mean, randomise, tiny_model, toy_data

from gpflow_dwp.latent_variable_deep_gp import (
    LatentVariableDeepGP,
    LocalInducingGPLayer,
    build_latent_variable_deep_gp,
)
from gpflow_dwp.layers import FreeEncoder, LatentVariableLayer
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.random import as_seed, fold_in

DATA = tuple(part[:4] for part in toy_data())


def make_model(architecture: str) -> LatentVariableDeepGP:
    """A model of four data with random parameters, and posteriors about as wide as the prior."""
    model = build_latent_variable_deep_gp(
        DATA, architecture, num_inducing=3, num_functions=2, jitter=1e-4
    )
    randomise(model, seed=1, scale=0.3)
    model.likelihood.variance.assign(0.3)
    for layer in model.layers:
        if hasattr(layer, "encoder"):
            bias = layer.encoder.biases[-1].numpy()
            bias[layer.latent_dim :] += 5.0
            layer.encoder.biases[-1].assign(bias)
    return model


def encoder_variables(model: LatentVariableDeepGP) -> list[tf.Variable]:
    """The encoders' variables."""
    encoders = [layer.encoder for layer in model.layers if hasattr(layer, "encoder")]
    return [variable for encoder in encoders for variable in encoder.trainable_variables]


def gradients(
    model: LatentVariableDeepGP,
    variables: Sequence[tf.Variable],
    num_draws: int,
    *,
    num_importance_samples: int,
    doubly: bool,
) -> np.ndarray:
    """Gradients of the bound per draw, [num_draws, number of entries]."""

    def one(index: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            bound = model.elbo(
                DATA,
                estimator=Estimator(num_importance_samples, doubly),
                seed=fold_in(as_seed(int(doubly)), index),
            )
        parts = tape.gradient(bound, variables)
        return tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)

    @tf.function(autograph=False)
    def every() -> tf.Tensor:
        return tf.map_fn(one, tf.range(num_draws), fn_output_signature=tf.float64)

    return every().numpy()


def test_expectation_is_that_of_the_plain_gradient() -> None:
    model = make_model("GP-LV-GP-LV-GP")
    variables = model.trainable_variables

    plain, doubly = (
        gradients(model, variables, 500, num_importance_samples=4, doubly=doubly)
        for doubly in (False, True)
    )

    assert_same_mean(plain, doubly, k_sigma=5.0, absolute=1e-10)
    assert np.abs(plain.mean(axis=0)).max() > 0.1


def test_encoders_get_gradients_of_less_variance() -> None:
    model = make_model("LV-GP-GP")
    variables = encoder_variables(model)

    plain, doubly = (
        gradients(model, variables, 200, num_importance_samples=50, doubly=doubly)
        for doubly in (False, True)
    )

    assert_same_mean(plain, doubly, k_sigma=5.0, absolute=1e-10)
    ratio = doubly.var(axis=0).sum() / plain.var(axis=0).sum()
    assert ratio < 0.1


def test_an_exact_posterior_leaves_no_noise() -> None:
    """Weights are all the same then, and so is their logarithm wherever it is taken."""
    output = LocalInducingGPLayer(
        gpflow.kernels.Linear(active_dims=[2]),
        np.array([[0.0, 0.0, 1.0]]),
        1,
        q_scale=1e-9,
        jitter=0.0,
    )
    output.q_mu.assign([[1.5]])
    model = LatentVariableDeepGP(
        [LatentVariableLayer(1, FreeEncoder(4)), output],
        gpflow.likelihoods.Gaussian(0.4),
        num_data=4,
    )
    precision = 1.0 + 1.5**2 / 0.4
    encoder = model.layers[0].encoder
    encoder.mean.assign(1.5 * DATA[1] / 0.4 / precision)
    encoder.scale.assign(np.full((4, 1), precision**-0.5))

    plain, doubly = (
        gradients(model, encoder_variables(model), 10, num_importance_samples=5, doubly=doubly)
        for doubly in (False, True)
    )

    np.testing.assert_allclose(doubly, 0.0, atol=1e-6)
    assert plain.std(axis=0).min() > 0.1


@pytest.mark.parametrize(
    ("architecture", "num_importance_samples"), [("LV-GP", 4), ("LV-GP-GP", 4), ("LV-GP-GP", 1)]
)
def test_what_does_not_change(architecture: str, num_importance_samples: int) -> None:
    """The value; gradients of what is above one layer; and all of them for one sample."""
    model = make_model(architecture)
    all_of_them = num_importance_samples == 1
    variables = (model if all_of_them else model.output_layer).trainable_variables

    def differentiate(doubly: bool) -> tuple[tf.Tensor, list[tf.Tensor]]:
        estimator = Estimator(num_importance_samples, doubly)
        with tf.GradientTape() as tape:
            bound = model.elbo(DATA, estimator=estimator, seed=0)
        return bound, tape.gradient(bound, variables, unconnected_gradients="zero")

    (value, plain), (same, doubly) = differentiate(False), differentiate(True)
    np.testing.assert_allclose(same, value, rtol=1e-12)
    if all_of_them or architecture == "LV-GP":
        for one, other in zip(plain, doubly, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-10)


def test_deep_kernel_processes_are_refused() -> None:
    model = tiny_model(2, data=DATA, num_inducing=3, latent_dim=1)

    with pytest.raises(ValueError, match="doubly_reparameterized must be False"):
        model.elbo(DATA, estimator=Estimator(2, True))
    assert np.isfinite(model.elbo(DATA, estimator=Estimator(1, True)))
    assert np.isfinite(
        tiny_model(2, data=DATA, num_inducing=3).elbo(DATA, estimator=Estimator(2, True))
    )
