"""The Wishart layer: its log ratio, its gradients, and the conditional of targets."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import GivenNoise, covariances, make_layer

from gpflow_dwp.layers import WishartLayer
from gpflow_dwp.random import as_seed

SEED = as_seed(0)

every_corner = pytest.mark.parametrize(
    ("size", "df", "family", "whiten"),
    [
        (4, 2, "AB", False),
        (4, 2, "AB", True),
        (3, 3, "AB", False),
        (3, 5, "AB", True),
        (4, 2, "A", True),
        (3, 3, "A", False),
        (4, 2, "GW", False),
    ],
)


@every_corner
def test_log_ratio_is_that_of_the_densities_and_expected_the_divergence(
    size: int, df: int, family: Any, whiten: bool
) -> None:
    layer, covariance = make_layer(size, df, family, whiten), covariances(4, size)
    prior, posterior = layer.prior(covariance), layer.posterior(covariance)
    draw = layer.sample_inducing(covariance, 4, SEED)
    layer.expected_log_ratio = True
    expected = layer.sample_inducing(covariance, 4, SEED)

    difference = prior.log_prob(draw.gram) - posterior.log_prob(draw.gram)
    np.testing.assert_allclose(draw.log_ratio, difference, atol=1e-8)
    np.testing.assert_allclose(expected.log_ratio, -posterior.kl_divergence(prior), rtol=1e-9)


def parameter_gradient(layer: WishartLayer, value: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Gradient of a value with respect to all parameters, as one vector."""
    with tf.GradientTape() as tape:
        mean = tf.reduce_mean(value())
    gradients = tape.gradient(
        mean, layer.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0)


@pytest.mark.parametrize("whiten", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gradient_is_in_expectation_that_of_the_divergence(whiten: bool) -> None:
    """Catches a part of the gradient that sampling alone has, or lacks."""
    layer = make_layer(3, 2, whiten=whiten)
    covariance = covariances(1, 3)

    def sampled(seed: tf.Tensor) -> tf.Tensor:
        draw = functools.partial(layer.sample_inducing, covariance, 400, seed)
        return parameter_gradient(layer, lambda: draw().log_ratio)

    def divergence() -> tf.Tensor:
        return -layer.posterior(covariance).kl_divergence(layer.prior(covariance))

    exact = parameter_gradient(layer, divergence).numpy()
    for expected_log_ratio in (False, True):
        layer.expected_log_ratio = expected_log_ratio
        compiled = tf.function(sampled, autograph=False)
        gradients = np.stack([compiled(as_seed(seed)) for seed in range(20)])
        # 5 sigma, for about 50 numbers.
        model_reference.assert_same_mean(gradients, exact, k_sigma=5.0, absolute=1e-8)


@pytest.mark.parametrize(("size", "df", "whiten"), [(4, 2, False), (3, 3, True), (3, 5, True)])
def test_sticking_the_landing_has_no_variance_at_the_prior(
    size: int, df: int, whiten: bool
) -> None:
    layer = make_layer(size, df, whiten=whiten)
    model_reference.set_to_prior(layer)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(layer.sample_inducing(covariances(2, size), 2, SEED).log_ratio)
    factor = layer.bartlett_factor
    parameters = (factor.concentration, factor.rate, factor.loc, factor.scale)
    variables = [parameter.unconstrained_variable for parameter in parameters]

    for gradient in tape.gradient(value, variables):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-8)


@pytest.mark.parametrize(
    ("size", "df", "expected_log_ratio", "whiten"),
    [
        (4, 2, False, False),
        (4, 2, True, True),
        (3, 3, False, True),
        (3, 5, True, False),
    ],
)
def test_gradient_of_the_log_ratio_is_that_of_finite_differences(
    size: int, df: int, expected_log_ratio: bool, whiten: bool
) -> None:
    layer = make_layer(size, df, whiten=whiten, expected_log_ratio=expected_log_ratio)
    # No jitter: no gradient is to flow through it, while finite differences would see it.
    layer.jitter = 0.0
    root = tf.Variable(np.linalg.cholesky(covariances(2, size)))
    # Of the Bartlett factor's α, β, μ and σ it is so in expectation: see above.
    factor, kernel = layer.bartlett_factor, layer.kernel
    others = (factor.concentration, factor.rate, factor.loc, factor.scale, *kernel.parameters)
    apart = {id(parameter.unconstrained_variable) for parameter in others}
    variables = [v for v in layer.trainable_variables if id(v) not in apart] + [root]

    def value() -> tf.Tensor:
        covariance = tf.matmul(root, root, transpose_b=True)
        return tf.reduce_sum(layer.sample_inducing(covariance, 2, SEED).log_ratio)

    model_reference.assert_gradients_are_finite_differences(value, variables)


@pytest.mark.parametrize("df", [2, 3, 5])
def test_joint_targets_are_products_of_features_drawn_in_numpy(df: int) -> None:
    layer, covariance = make_layer(3, df, jitter=1e-12), covariances(1, 5, seed=4)
    draw = layer.sample_inducing(covariance[:, :3, :3], 4, SEED)
    noise = np.random.default_rng(6).normal(size=(4, 2, df))
    blocks = model_reference.target_blocks(covariance, 3, full_cov=True)
    gram = layer.condition(draw, blocks, GivenNoise(noise))

    features, scale = np.zeros((4, 3, df)), covariance[0].numpy() / df
    features[..., : min(3, df)] = draw.features
    interpolation = np.linalg.solve(scale[:3, :3], scale[:3, 3:])
    remainder = scale[3:, 3:] - scale[3:, :3] @ interpolation
    targets = interpolation.T @ features + np.linalg.cholesky(remainder) @ noise
    np.testing.assert_allclose(gram.it, features @ targets.swapaxes(1, 2), atol=1e-9)
    np.testing.assert_allclose(gram.tt, targets @ targets.swapaxes(1, 2), atol=1e-9)


@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 5)])
@pytest.mark.parametrize("shared", [False, True])
def test_expected_features_are_those_without_noise(size: int, df: int, shared: bool) -> None:
    num_samples, num_targets = 2, 3
    joint = covariances(1 if shared else num_samples, size + num_targets)
    layer = make_layer(size, df)
    draw = layer.sample_inducing(joint[:, :size, :size], num_samples, SEED)
    blocks = model_reference.target_blocks(joint, size, full_cov=False)

    expected = layer.expect(draw, blocks)

    noise = GivenNoise(tf.zeros([num_samples, num_targets, df], tf.float64))
    drawn = layer.condition(draw, blocks, noise)
    for ours, without_noise in zip(expected, drawn, strict=True):
        np.testing.assert_allclose(ours, without_noise, atol=1e-12)


def test_gradient_is_finite_where_a_target_is_an_inducing_point() -> None:
    model_reference.assert_gradient_is_finite_at_inducing_points(make_layer(3, 2), width=2)
