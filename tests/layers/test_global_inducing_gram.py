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
from model_reference import SIZES, covariances

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.kernels import gram_K, gram_K_cross
from gpflow_dwp.layers import GlobalInducingGramLayer
from gpflow_dwp.layers.base import TargetNoise
from gpflow_dwp.random import as_seed, normal

SEED = as_seed(0)

every_size = pytest.mark.parametrize(("size", "width"), SIZES)


def make_layer(size: int, width: int, **arguments: Any) -> GlobalInducingGramLayer:
    kernel = gpflow.kernels.SquaredExponential()
    layer = GlobalInducingGramLayer(kernel, width, size, **{"seed": 0, **arguments})
    tril = reference.random_tril(np.random.default_rng(1), size, size)
    layer.precision_tril.assign(tril)
    return layer


@every_size
def test_posterior_has_the_moments_of_explicit_inverses(size: int, width: int) -> None:
    layer = make_layer(size, width)
    covariance = covariances(2, size)

    posterior = layer.posterior(covariance)

    assert posterior.batch_shape == (2, width) and posterior.event_shape == (size,)
    assert np.all(tf.linalg.diag_part(posterior.scale.to_dense()) > 0.0)
    for s in range(2):
        k_ii = model_reference.jittered(layer, covariance[s].numpy())
        mean, expected, _ = model_reference.numpy_global_inducing(layer, k_ii)
        np.testing.assert_allclose(posterior.mean()[s], mean.T, atol=1e-10)
        for j in range(width):
            np.testing.assert_allclose(posterior.covariance()[s, j], expected, atol=1e-10)


@every_size
def test_log_ratio_is_minus_the_divergence_of_posterior_and_prior(size: int, width: int) -> None:
    layer = make_layer(size, width)
    covariance = covariances(3, size)

    log_ratio = layer.sample_inducing(covariance, 3, SEED).log_ratio

    posterior, prior = layer.posterior(covariance), layer.prior(covariance)
    divergence = tfp.distributions.kl_divergence(posterior, prior)
    np.testing.assert_allclose(log_ratio, -tf.reduce_sum(divergence, axis=1), atol=1e-9)


@every_size
def test_a_draw_is_that_of_the_reference_used_for_whole_models(size: int, width: int) -> None:
    layer = make_layer(size, width)
    joint = covariances(2, size + 2)
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(2, 2, width))
    blocks = TargetBlocks(joint[:, :size, size:], tf.linalg.diag_part(joint)[:, size:])

    draw = layer.sample_inducing(joint[:, :size, :size], 2, SEED)
    gram = model_reference.condition(layer, draw, blocks, tf.constant(noise), full_cov=False)

    numbers = normal([2, size, width], SEED, tf.float64).numpy()
    for s in range(2):
        expected = model_reference.numpy_hidden_layer(layer, joint[s].numpy(), numbers[s], noise[s])
        features, targets = expected.inducing_features, expected.target_features
        np.testing.assert_allclose(draw.features[s], features, atol=1e-10)
        np.testing.assert_allclose(draw.gram[s], features @ features.T, atol=1e-10)
        np.testing.assert_allclose(draw.log_ratio[s], expected.log_ratio, atol=1e-9)
        np.testing.assert_allclose(gram.it[s], features @ targets.T, atol=1e-9)
        np.testing.assert_allclose(gram.tt[s], np.sum(targets**2, axis=1), atol=1e-9)


def log_ratio_and_gram(layer: GlobalInducingGramLayer, points: tf.Tensor) -> tf.Tensor:
    """A number that depends on all that a layer does."""
    covariance = layer.kernel(points)[None]
    draw = layer.sample_inducing(covariance, 2, SEED)
    noise = tf.ones([2, layer.num_inducing, layer.width], points.dtype)
    blocks = TargetBlocks(0.9 * covariance, tf.linalg.diag_part(covariance))
    gram = model_reference.condition(layer, draw, blocks, noise, full_cov=False)
    return tf.reduce_sum(draw.log_ratio) + tf.reduce_sum(gram.it) + tf.reduce_sum(gram.tt)


def toy_points(size: int) -> tf.Tensor:
    points = np.random.default_rng(0).normal(size=(size, 2))
    return tf.constant(points, gpflow.default_float())


@every_size
def test_gradients_are_those_of_finite_differences(size: int, width: int) -> None:
    # No jitter: no gradient is to flow through it, while finite differences would see it.
    layer, points = make_layer(size, width, jitter=0.0), toy_points(size)

    model_reference.assert_gradients_are_finite_differences(
        lambda: log_ratio_and_gram(layer, points), layer.trainable_variables
    )


def test_single_precision() -> None:
    exact = make_layer(4, 3)
    covariance = covariances(2, 4)
    gpflow.config.set_default_float(np.float32)
    layer = make_layer(4, 3, pseudo_targets=exact.pseudo_targets.numpy())

    draw = layer.sample_inducing(tf.cast(covariance, tf.float32), 2, SEED)
    posterior = layer.posterior(tf.cast(covariance, tf.float32))

    assert {draw.gram.dtype, draw.features.dtype, draw.log_ratio.dtype} == {tf.float32}
    assert posterior.dtype == tf.float32
    assert np.isfinite(log_ratio_and_gram(layer, toy_points(4)))
    expected = exact.sample_inducing(covariance, 2, SEED).log_ratio
    np.testing.assert_allclose(draw.log_ratio, expected, rtol=1e-4)


def test_very_precise_targets_of_a_singular_covariance() -> None:
    layer = make_layer(4, 2)
    layer.precision_tril.assign(1e4 * np.eye(4))
    root = np.random.default_rng(2).normal(size=(1, 4, 1))

    draw = layer.sample_inducing(tf.constant(root @ root.swapaxes(1, 2)), 2, SEED)

    assert np.all(np.isfinite(draw.log_ratio)) and np.all(np.isfinite(draw.gram))


@pytest.mark.parametrize("group", [1, 2], ids=["single", "joint"])
def test_feature_scales_are_lengthscales_of_the_kernel_above(group: int) -> None:
    """Of what GPflow's kernel makes of the same features, at inducing points and targets."""
    scales = np.array([0.2, 1.0, 3.0])
    kernel = gpflow.kernels.SquaredExponential()
    points, targets = np.random.default_rng(0).normal(size=(2, 4, 3))
    covariance, cross = kernel(points)[None], kernel(points, targets)[None]
    tt = tf.stack([kernel(targets[i : i + group]) for i in range(0, 4, group)])[None]
    blocks = TargetBlocks(cross, tt)
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


def test_starting_values() -> None:
    targets = np.arange(8.0).reshape(4, 2)
    layer = GlobalInducingGramLayer(
        gpflow.kernels.Linear(), np.int64(2), np.int32(4), pseudo_targets=targets, precision=4.0
    )

    np.testing.assert_array_equal(layer.pseudo_targets, targets)
    np.testing.assert_allclose(layer.precision_tril, 2.0 * np.eye(4), atol=1e-12)
    assert (layer.width, layer.num_inducing, layer.num_features) == (2, 4, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "RBF"}, "kernel must be an instance of Kernel, got str"),
        ({"width": 0}, "width must be a positive integer, got 0"),
        ({"num_inducing": 0}, "num_inducing must be a positive integer, got 0"),
        ({"pseudo_targets": np.zeros(3)}, r"shape \[3, 2\], got \[3\]"),
        ({"pseudo_targets": [[1.0], [1.0, 2.0]]}, "pseudo_targets must hold numbers"),
        ({"feature_scales": [1.0]}, r"feature_scales must be 2 positive numbers, got \[1.0\]"),
        ({"feature_scales": [1.0, 0.0]}, "feature_scales must be 2 positive numbers"),
        ({"feature_scales": [[1.0], 2.0]}, "feature_scales must be 2 positive numbers"),
        ({"precision": 0.0}, "precision must be a positive number, got 0.0"),
        ({"jitter": -1e-6}, "jitter must not be negative, got -1e-06"),
        ({"width": 10**15}, "width must be smaller, got 1000000000000000"),
        ({"pseudo_targets": np.full((3, 2), np.nan)}, "pseudo_targets holds nan in row 1"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"kernel": gpflow.kernels.Linear(), "width": 2, "num_inducing": 3, **changes}
    with pytest.raises(ValueError, match=message):
        GlobalInducingGramLayer(**arguments)
