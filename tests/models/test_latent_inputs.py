"""Latent variables below the first kernel of a deep kernel process."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from model_reference import (
    assert_gradients_are_finite_differences,
    assert_same_mean,
    tiny_model,
    toy_data,
)

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.models import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)

K_SIGMA = 4.0


def without_latents(model, data):
    """The model with its latent variables as inputs that are known: their posterior means."""
    X, Y = data
    latents, _ = model.latent_layer.encoder(tf.constant(X), tf.constant(Y))
    plain = type(model)(
        model.layers,
        model.likelihood,
        model.inducing_variable,
        num_data=model.num_data,
        num_samples=model.num_samples,
    )
    return plain, (np.hstack([X, latents]), Y)


@pytest.mark.parametrize(
    ("build", "depth", "num_importance_samples"),
    [
        (build_deep_wishart_process, 1, 1),
        (build_deep_wishart_process, 1, 4),
        (build_deep_wishart_process, 3, 1),
        (build_deep_wishart_process, 2, 4),
        (build_deep_gaussian_process, 2, 4),
        (build_deep_inverse_wishart_process, 2, 1),
    ],
)
def test_latents_that_are_known_are_inputs(build, depth, num_importance_samples) -> None:
    data = toy_data(num=5)
    model = tiny_model(depth, build, data=data, latent_dim=2, num_samples=2000)
    last = model.latent_layer.encoder.biases[-1]
    last.assign([0.3, -0.2, -20.0, -20.0])  # their standard deviations are e⁻²⁵

    terms = model.elbo_terms(data, num_importance_samples=num_importance_samples, seed=0)

    plain, known = without_latents(model, data)
    expected = plain.elbo_terms(known, seed=1)
    np.testing.assert_allclose(terms.log_ratios, expected.log_ratios, rtol=0.1, atol=0.1)
    # Copies coincide, so the bound is the same for all K; p(w)/q(w) is known up to noise.
    mean, scale = model.latent_layer.encoder(*map(tf.constant, data))
    expected_ratio = 0.5 * (1.0 - mean**2 - scale**2) + np.log(scale)
    data_term = float(terms.data - np.sum(expected_ratio))
    if num_importance_samples == 1:
        spread = np.abs(float(expected.data)) * (1e-8 if depth == 1 else 0.05)
        np.testing.assert_allclose(data_term, expected.data, atol=spread)
    else:
        # log-mean-exp of exp(½(ε² - 1)): at least what K = 1 gives.
        assert data_term > expected.data - 0.05 * np.abs(expected.data)


@pytest.mark.parametrize("build", [build_deep_wishart_process, build_latent_variable_deep_gp])
def test_minibatches_and_single_draws_are_unbiased(build) -> None:
    X, Y = data = toy_data(num=12)
    if build is build_latent_variable_deep_gp:
        model = build(data, "LV-GP-GP", num_inducing=5)
    else:
        model = tiny_model(2, build, data=data, latent_dim=1, posterior="GW", whiten=True)
    model.likelihood.variance.assign(0.5)

    def data_terms(num_samples: int, repeats: int, *parts: slice) -> np.ndarray:
        model.num_samples = num_samples

        def term(seed: tf.Tensor) -> tf.Tensor:
            terms = [
                model.elbo_terms((X[part], Y[part]), num_importance_samples=3, seed=seed).data
                for part in parts
            ]
            return tf.reduce_mean(terms)

        @tf.function(autograph=False)
        def every() -> tf.Tensor:
            return tf.map_fn(
                term, tf.range(repeats, dtype=tf.int64), fn_output_signature=tf.float64
            )

        return every().numpy()

    expected = data_terms(200, 8, slice(None))
    assert_same_mean(data_terms(1, 300, slice(6), slice(6, None)), expected, K_SIGMA)


def test_gradients_of_the_encoder_are_those_of_finite_differences() -> None:
    data = toy_data()
    model = tiny_model(3, data=data, latent_dim=1, num_samples=2)
    model.latent_layer.encoder.biases[-1].assign([0.0, 4.0])
    variable = model.latent_layer.encoder.weights[1].unconstrained_variable

    def bound() -> tf.Tensor:
        return model.elbo(data, num_importance_samples=3, seed=0)

    assert_gradients_are_finite_differences(bound, [variable], rel=1e-4)
