"""The inverse Wishart layer: its log ratio, its gradients, and the conditional of targets."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import GivenNoise, covariances, target_blocks
from scipy import stats

from gpflow_dwp.layers import InverseWishartLayer
from gpflow_dwp.random import as_seed

SEED = as_seed(0)

every_size = pytest.mark.parametrize("size", [1, 4])


def make_layer(size: int, **arguments: Any) -> InverseWishartLayer:
    arguments = {"df": 3.0, "expected_log_ratio": False, "seed": 0, **arguments}
    layer = InverseWishartLayer(gpflow.kernels.SquaredExponential(), size, **arguments)
    model_reference.randomise(layer, seed=1)
    return layer


@every_size
def test_prior_and_posterior_are_the_papers(size: int) -> None:
    layer = make_layer(size, jitter=0.0)
    covariance = covariances(1, size)
    gram = layer.sample_inducing(covariance, 1, SEED).gram[0].numpy()
    df, extra_df = float(layer.df.numpy()), float(layer.extra_df.numpy())
    scale, root = df * covariance[0].numpy(), layer.root.numpy()

    prior = stats.invwishart(df + size + 1, scale).logpdf(gram)
    scale = scale + float(layer.root_scale.numpy()) * root @ root.T / size
    posterior = stats.invwishart(df + extra_df + size + 1, scale).logpdf(gram)

    np.testing.assert_allclose(layer.prior(covariance).log_prob(gram)[0], prior, atol=1e-9)
    np.testing.assert_allclose(layer.posterior(covariance).log_prob(gram)[0], posterior, atol=1e-9)
    np.testing.assert_allclose(layer.prior(covariance).mean(), covariance)


@every_size
def test_log_ratio_is_that_of_the_densities_and_on_average_minus_the_divergence(size: int) -> None:
    layer = make_layer(size)
    covariance = covariances(1, size)
    prior, posterior = layer.prior(covariance), layer.posterior(covariance)
    sampled = layer.sample_inducing(covariance, 20_000, SEED)

    layer.expected_log_ratio = True
    expected = layer.sample_inducing(covariance, 20_000, SEED)

    difference = prior.log_prob(sampled.gram) - posterior.log_prob(sampled.gram)
    np.testing.assert_allclose(sampled.log_ratio[:4], difference[:4], atol=1e-8)
    # 4.5 sigma.
    value = expected.log_ratio.numpy()[0]
    model_reference.assert_same_mean(sampled.log_ratio.numpy(), value, k_sigma=4.5)
    np.testing.assert_allclose(value, -posterior.kl_divergence(prior)[0], atol=1e-9)
    np.testing.assert_array_equal(expected.gram, sampled.gram)


@every_size
@pytest.mark.parametrize("expected_log_ratio", [False, True])
def test_gradient_of_the_log_ratio_is_that_of_finite_differences(
    size: int, expected_log_ratio: bool
) -> None:
    # No jitter: no gradient is to flow through it, while finite differences would see it.
    layer = make_layer(size, expected_log_ratio=expected_log_ratio, jitter=0.0)
    root = tf.Variable(np.linalg.cholesky(covariances(2, size)))
    variables = [layer.root.unconstrained_variable, layer.root_scale.unconstrained_variable, root]
    if expected_log_ratio:
        # Draws of Gamma variables have implicit gradients, which are not those of their sampler.
        variables += [layer.df.unconstrained_variable, layer.extra_df.unconstrained_variable]

    def value() -> tf.Tensor:
        covariance = tf.matmul(root, root, transpose_b=True)
        return tf.reduce_sum(layer.sample_inducing(covariance, 2, SEED).log_ratio)

    model_reference.assert_gradients_are_finite_differences(value, variables)


def assert_same_law(ours: np.ndarray, theirs: np.ndarray) -> None:
    """By two-sample Kolmogorov-Smirnov tests at p = 1e-5 (4.4 sigma)."""
    first, second = np.random.default_rng(8).normal(size=(2, ours.shape[-1]))
    for name, functional in {
        "quadratic": lambda g: np.einsum("i,nij,j->n", first, g, first),
        "bilinear": lambda g: np.einsum("i,nij,j->n", first, g, second),
        "inverse": lambda g: np.einsum("i,nij,j->n", first, np.linalg.inv(g), first),
        "determinant": np.linalg.det,
        "variance": lambda g: g[:, 3, 3],
        "with an inducing point": lambda g: g[:, 0, 3],
        "correlation": lambda g: g[:, 0, -1] / np.sqrt(g[:, 0, 0] * g[:, -1, -1]),
        "between the last": lambda g: g[:, -2, -1] / np.sqrt(g[:, -2, -2] * g[:, -1, -1]),
        "remainder": lambda g: 1.0 / np.linalg.inv(g)[:, -1, -1],
        "distance": lambda g: g[:, 3, 3] - 2.0 * g[:, 1, 3] + g[:, 1, 1],
    }.items():
        assert stats.ks_2samp(functional(ours), functional(theirs)).pvalue > 1e-5, name


@pytest.mark.parametrize(("full_cov", "df", "size"), [(True, 0.5, 5), (False, 4.0, 4)])
def test_targets_have_the_law_of_the_joint_inverse_wishart(
    full_cov: bool, df: float, size: int
) -> None:
    """Together over 3 + 2 points, and, which is consistency, each by itself over 3 + 1."""
    layer, covariance = make_layer(3, jitter=1e-10), covariances(1, 5, seed=4)
    for parameter, value in ((layer.root_scale, 1e-30), (layer.extra_df, 1e-30), (layer.df, df)):
        parameter.assign(value)  # which is the prior
    draw = layer.sample_inducing(covariance[:, :3, :3], 20_000, SEED)
    noise = GivenNoise(np.random.default_rng(6).normal(size=(20_000, 2, 4)))
    gram = layer.condition(draw, target_blocks(covariance, 3, full_cov=full_cov), noise)
    ii, it, tt = (part.numpy() for part in (draw.gram, gram.it, gram.tt))
    it, tt = (it, tt) if full_cov else (it[:, :, :1], tt[:, :1, None])

    joint = stats.invwishart(df + size + 1, df * covariance[0, :size, :size].numpy())
    theirs = joint.rvs(20_000, random_state=7)
    assert_same_law(np.block([[ii, it], [it.swapaxes(1, 2), tt]]), theirs)


@pytest.mark.parametrize("full_cov", [False, True])
def test_gradients_of_targets_are_those_of_finite_differences(full_cov: bool) -> None:
    layer = make_layer(3, jitter=0.0)
    covariance = covariances(2, 5, seed=4)
    root = tf.Variable(np.linalg.cholesky(covariance))
    noise = tf.constant(np.random.default_rng(1).normal(size=(2, 2, 4)))
    weights = np.random.default_rng(2).normal(size=(2, 5, 5))
    gram_root = layer.sample_inducing(covariance[:, :3, :3], 2, SEED).features
    gram_root = tf.Variable(gram_root)

    def value() -> tf.Tensor:
        covariance = tf.matmul(root, root, transpose_b=True)
        # The draw is a constant, but for its root: Gamma variables have implicit gradients.
        draw = layer.sample_inducing(covariance[:, :3, :3], 2, SEED)._replace(features=gram_root)
        blocks = target_blocks(covariance, 3, full_cov=full_cov)
        gram = layer.condition(draw, blocks, GivenNoise(noise))
        total = tf.reduce_sum(weights[:, :3, 3:] * gram.it)
        return total + tf.reduce_sum(weights[:, :2, :2] * gram.tt if full_cov else gram.tt)

    variables = [root, gram_root, layer.df.unconstrained_variable]
    model_reference.assert_gradients_are_finite_differences(value, variables)


def test_gradient_is_finite_where_a_target_is_an_inducing_point() -> None:
    model_reference.assert_gradient_is_finite_at_inducing_points(make_layer(3), width=4)
