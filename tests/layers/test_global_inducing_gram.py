"""The hidden layer of a deep GP: explicit inverses, explicit Gaussians, and drawn features."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import reference
import tensorflow as tf
import tensorflow_probability as tfp
from model_reference import covariances

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.kernels import gram_K, gram_K_cross
from gpflow_dwp.layers import GlobalInducingGramLayer
from gpflow_dwp.random import TargetNoise, as_seed

SEED = as_seed(0)

every_size = pytest.mark.parametrize(("size", "width"), [(4, 2), (3, 3), (3, 5)])


def make_layer(size: int, width: int, **arguments: Any) -> GlobalInducingGramLayer:
    kernel = gpflow.kernels.SquaredExponential()
    layer = GlobalInducingGramLayer(kernel, width, size, **{"seed": 0, **arguments})
    tril = reference.random_tril(np.random.default_rng(1), size, size)
    layer.precision_tril.assign(tril)
    return layer


@every_size
def test_posterior_is_that_of_explicit_inverses_and_log_ratio_its_divergence(
    size: int, width: int
) -> None:
    layer = make_layer(size, width)
    covariance = covariances(2, size)

    posterior, prior = layer.posterior(covariance), layer.prior(covariance)

    assert posterior.batch_shape == (2, width) and posterior.event_shape == (size,)
    assert np.all(tf.linalg.diag_part(posterior.scale.to_dense()) > 0.0)
    for s in range(2):
        k_ii = model_reference.jittered(layer, covariance[s].numpy())
        mean, expected, _ = model_reference.numpy_global_inducing(layer, k_ii)
        np.testing.assert_allclose(posterior.mean()[s], mean.T, atol=1e-10)
        for j in range(width):
            np.testing.assert_allclose(posterior.covariance()[s, j], expected, atol=1e-10)
    log_ratio = layer.sample_inducing(covariance, 2, SEED).log_ratio
    divergence = tfp.distributions.kl_divergence(posterior, prior)
    np.testing.assert_allclose(log_ratio, -tf.reduce_sum(divergence, axis=1), atol=1e-9)


def log_ratio_and_gram(layer: GlobalInducingGramLayer, points: tf.Tensor) -> tf.Tensor:
    """A number that depends on all that a layer does."""
    covariance = layer.kernel(points)[None]
    draw = layer.sample_inducing(covariance, 2, SEED)
    noise = tf.ones([2, layer.num_inducing, layer.width], points.dtype)
    blocks = TargetBlocks(0.9 * covariance, tf.linalg.diag_part(covariance))
    gram = layer.condition(draw, blocks, model_reference.GivenNoise(noise))
    return tf.reduce_sum(draw.log_ratio) + tf.reduce_sum(gram.it) + tf.reduce_sum(gram.tt)


@every_size
def test_gradients_are_those_of_finite_differences(size: int, width: int) -> None:
    # No jitter: no gradient is to flow through it, while finite differences would see it.
    layer = make_layer(size, width, jitter=0.0)
    points = tf.constant(np.random.default_rng(0).normal(size=(size, 2)))

    model_reference.assert_gradients_are_finite_differences(
        lambda: log_ratio_and_gram(layer, points), layer.trainable_variables
    )


def test_very_precise_targets_of_a_singular_covariance() -> None:
    layer = make_layer(4, 2)
    layer.precision_tril.assign(1e4 * np.eye(4))
    root = np.random.default_rng(2).normal(size=(1, 4, 1))

    draw = layer.sample_inducing(tf.constant(root @ root.swapaxes(1, 2)), 2, SEED)

    assert np.all(np.isfinite(draw.log_ratio)) and np.all(np.isfinite(draw.gram))


@pytest.mark.parametrize("full_cov", [False, True])
def test_feature_scales_are_lengthscales_of_the_kernel_above(full_cov: bool) -> None:
    """Of what GPflow's kernel makes of the same features, at inducing points and targets."""
    scales = np.array([0.2, 1.0, 3.0])
    kernel = gpflow.kernels.SquaredExponential()
    points, targets = np.random.default_rng(0).normal(size=(2, 4, 3))
    covariance, cross = kernel(points)[None], kernel(points, targets)[None]
    blocks = TargetBlocks(cross, kernel(targets, full_cov=full_cov)[None])
    noise = TargetNoise(as_seed(2), 2, 4, tf.float64)

    scaled, plain = (make_layer(4, 3, feature_scales=s) for s in (scales, None))
    draw, of_plain = (layer.sample_inducing(covariance, 2, SEED) for layer in (scaled, plain))
    below = scaled.condition(draw, blocks, noise)
    features = np.sqrt(3) * plain.condition(of_plain, blocks, noise).features.numpy()

    ard = gpflow.kernels.SquaredExponential(lengthscales=1.0 / scales)
    inducing = np.sqrt(3) * of_plain.features.numpy()
    for s in range(2):
        np.testing.assert_allclose(gram_K(kernel, draw.gram)[s], ard(inducing[s]), atol=1e-10)
        found = gram_K_cross(kernel, below.it, tf.linalg.diag_part(draw.gram), below.diagonal)
        np.testing.assert_allclose(found[s], ard(inducing[s], features[s]), atol=1e-10)
    np.testing.assert_array_equal(draw.log_ratio, of_plain.log_ratio)
