"""Latent variables: their densities against SciPy and GPflow, and encoders against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.kullback_leiblers import gauss_kl
from model_reference import GivenEncoder
from scipy import stats

from gpflow_dwp.latent_variable_deep_gp import LatentVariableLayer, NetworkEncoder
from gpflow_dwp.latent_variable_deep_gp.latent_variable import RowEncoder


def test_network_is_that_of_a_numpy_loop() -> None:
    rng = np.random.default_rng(0)
    encoder = NetworkEncoder(3, latent_dim=2, hidden_dims=(4, 5), seed=1)
    for bias in encoder.biases:
        bias.assign(rng.normal(size=bias.shape))
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    mean, scale = encoder(tf.constant(X), tf.constant(Y))
    units = np.hstack([X, Y])
    for index, width in enumerate((4, 5)):
        skip = np.zeros((6, width))
        skip[:, : units.shape[1]] = units
        pre = units @ encoder.weights[index].numpy() + encoder.biases[index].numpy()
        units = np.tanh(pre) + skip
    last = units @ encoder.weights[2].numpy() + encoder.biases[2].numpy()
    np.testing.assert_allclose(mean, last[:, :2], rtol=1e-12)
    np.testing.assert_allclose(scale, np.exp(last[:, 2:] - 5.0), rtol=1e-12)


def test_log_ratio_is_the_difference_of_two_log_densities() -> None:
    rng = np.random.default_rng(0)
    encoder = GivenEncoder(rng.normal(size=(4, 2)), rng.uniform(0.3, 2.0, size=(4, 2)))
    layer = LatentVariableLayer(encoder)
    X = tf.zeros([4, 1], tf.float64)
    latents, log_ratio = layer.sample(X, X, tf.constant(rng.normal(size=(3, 4, 5, 2))))
    _, expected = layer.sample(X, X, tf.constant(rng.normal(size=(3, 4, 1, 2))))
    mean, scale = encoder.mean[:, None], encoder.scale[:, None]
    log_p = stats.norm.logpdf(latents.numpy())
    log_q = stats.norm.logpdf(latents.numpy(), mean, scale)
    np.testing.assert_allclose(log_ratio, (log_p - log_q).sum(axis=-1), rtol=1e-10)
    kl = gauss_kl(encoder.mean, encoder.scale)
    np.testing.assert_allclose(tf.reduce_sum(expected), -kl, rtol=1e-10)


def test_rows_have_parameters_of_their_own() -> None:
    """In any order and number; copies share them, missing values count, and strangers have none.
    Catches gradients that are sparse, which not all optimisers take."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    X[4], Y[4], Y[2] = X[1], Y[1], np.nan
    encoder = RowEncoder(X, Y, latent_dim=2)
    encoder.mean.assign(rng.normal(size=(6, 2)))
    rows = [5, 2, 4, 1, 0]
    with tf.GradientTape() as tape:
        mean, scale = encoder(tf.constant(X[rows]), tf.constant(Y[rows]))
    np.testing.assert_array_equal(mean, encoder.mean.numpy()[[5, 2, 1, 1, 0]])
    gradient = tape.gradient(mean, encoder.mean.unconstrained_variable)
    assert tf.is_tensor(gradient)
    np.testing.assert_array_equal(gradient[:, 0], [1.0, 2.0, 1.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(scale, np.exp(-5.0))
    strangers, _ = encoder(tf.constant(X[[0, 1, 3]]), tf.constant(Y[[0, 1, 3]] + 1e-12))
    assert np.isnan(strangers).all()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="encoder must be an instance of Encoder, got str"):
        LatentVariableLayer("network")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="hidden_dims must be a positive integer, got 0"):
        NetworkEncoder(3, hidden_dims=(0,))
    with pytest.raises(ValueError, match="num_inputs=5 columns together, got 2 and 1"):
        NetworkEncoder(5)(np.zeros((4, 2)), np.zeros((4, 1)))
