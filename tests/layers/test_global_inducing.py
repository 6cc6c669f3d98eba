"""The Gaussian output layer against explicit inverses."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import reference
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers import GlobalInducingGPLayer

M, N, Q, S = 4, 3, 2, 2


def make_layer() -> GlobalInducingGPLayer:
    rng = np.random.default_rng(0)
    layer = GlobalInducingGPLayer(
        gpflow.kernels.SquaredExponential(), Q, pseudo_targets=rng.normal(size=(M, Q))
    )
    layer.precision_tril.assign(reference.random_tril(rng, M, M))
    return layer


def joint_covariance() -> np.ndarray:
    return model_reference.random_covariance(np.random.default_rng(1), S, M + N)


def blocks(joint: np.ndarray, *, full_cov: bool) -> TargetBlocks:
    tt = joint[:, M:, M:] if full_cov else np.diagonal(joint[:, M:, M:], axis1=1, axis2=2)
    return TargetBlocks(tf.constant(joint[:, :M, M:]), tf.constant(tt))


def posterior_of_u(layer: GlobalInducingGPLayer, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    precision_tril = layer.precision_tril.numpy()
    precision = precision_tril @ precision_tril.T
    covariance = np.linalg.inv(np.linalg.inv(K) + precision)
    return covariance @ precision @ layer.pseudo_targets.numpy(), covariance


def test_log_ratio_is_the_negative_divergence_between_gaussians() -> None:
    layer, joint = make_layer(), joint_covariance()

    log_ratio = layer.infer_inducing(tf.constant(joint[:, :M, :M])).log_ratio

    tfd = tfp.distributions
    for s in range(S):
        K = joint[s, :M, :M]
        mean, covariance = posterior_of_u(layer, K)
        q = tfd.MultivariateNormalTriL(mean.T, np.linalg.cholesky(covariance))
        p = tfd.MultivariateNormalTriL(np.zeros((Q, M)), np.linalg.cholesky(K))
        expected = -np.sum(tfd.kl_divergence(q, p))
        np.testing.assert_allclose(log_ratio[s], expected, rtol=1e-9)


@pytest.mark.parametrize("full_cov", [False, True])
def test_mean_and_covariance_at_targets(full_cov: bool) -> None:
    layer, joint = make_layer(), joint_covariance()
    draw = layer.infer_inducing(tf.constant(joint[:, :M, :M]))

    mean, covariance = model_reference.condition_output(
        layer, draw, blocks(joint, full_cov=full_cov), full_cov=full_cov
    )

    for s in range(S):
        K = joint[s, :M, :M]
        mean_u, covariance_u = posterior_of_u(layer, K)
        interpolation = joint[s, M:, :M] @ np.linalg.inv(K)
        expected = joint[s, M:, M:] - interpolation @ (K - covariance_u) @ interpolation.T
        expected = expected if full_cov else np.diag(expected)
        np.testing.assert_allclose(mean[s], interpolation @ mean_u, atol=1e-10)
        np.testing.assert_allclose(covariance[s], expected, atol=1e-10)


@pytest.mark.parametrize("full_cov", [False, True])
def test_mixed_functions_entry_by_entry(full_cov: bool) -> None:
    """Against the covariance of g W, written out over points and outputs."""
    layer, joint = make_layer(), joint_covariance()
    mixing = np.random.default_rng(3).normal(size=(Q, 3))
    mixed = GlobalInducingGPLayer(
        layer.kernel, 3, pseudo_targets=layer.pseudo_targets.numpy(), mixing=mixing
    )
    mixed.precision_tril.assign(layer.precision_tril)
    draw, mixed_draw = (
        each.infer_inducing(tf.constant(joint[:, :M, :M])) for each in (layer, mixed)
    )

    mean, covariance = model_reference.condition_output(
        mixed, mixed_draw, blocks(joint, full_cov=full_cov), full_cov=full_cov
    )

    plain, shared = model_reference.condition_output(
        layer, draw, blocks(joint, full_cov=full_cov), full_cov=full_cov
    )
    np.testing.assert_allclose(mixed_draw.log_ratio, draw.log_ratio)
    np.testing.assert_allclose(mean, plain @ mixing, atol=1e-12)
    for output, scale in enumerate(np.diag(mixing.T @ mixing)):
        part = covariance[:, output]
        np.testing.assert_allclose(part, scale * shared, atol=1e-12)


def test_singular_covariance_needs_no_jitter() -> None:
    layer = make_layer()
    root = np.random.default_rng(2).normal(size=(1, M, 1))

    draw = layer.infer_inducing(tf.constant(root @ root.swapaxes(1, 2)))

    assert all(np.all(np.isfinite(part)) for part in draw)


def test_variance_is_never_negative() -> None:
    layer = make_layer()
    layer.precision_tril.assign(1e8 * np.eye(M))
    K = joint_covariance()[:, :M, :M]
    draw = layer.infer_inducing(tf.constant(K))
    at_inducing = TargetBlocks(tf.constant(K), tf.constant(np.diagonal(K, axis1=1, axis2=2)))

    _, variance = model_reference.condition_output(layer, draw, at_inducing, full_cov=False)

    assert np.all(variance.numpy() >= 0.0)
    np.testing.assert_allclose(variance, np.zeros((S, M)), atol=1e-12)


def test_pseudo_targets_start_at_zero_where_only_their_number_is_given() -> None:
    layer = GlobalInducingGPLayer(gpflow.kernels.Linear(), Q, num_inducing=M)

    np.testing.assert_array_equal(layer.pseudo_targets, np.zeros((M, Q)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pseudo_targets": np.zeros(M)}, r"shape \[num_inducing, 2\], got \[4\]"),
        ({"num_inducing": 3}, r"shape \[3, 2\], got \[4, 2\]"),
        ({"pseudo_targets": None}, "pseudo_targets or num_inducing must be given"),
        (
            {"pseudo_targets": None, "num_inducing": 0},
            "num_inducing must be a positive integer, got 0",
        ),
        ({"pseudo_targets": np.full((M, Q), np.nan)}, "pseudo_targets holds nan in row 1"),
        ({"pseudo_targets": 1j * np.ones((M, Q))}, "pseudo_targets must .* array of complex128"),
        ({"pseudo_targets": None, "num_inducing": 10**9}, "num_inducing must be smaller"),
        ({"precision": 0.0}, "precision must be a positive number, got 0.0"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"pseudo_targets": np.zeros((M, Q)), **changes}
    with pytest.raises(ValueError, match=message):
        GlobalInducingGPLayer(gpflow.kernels.Linear(), Q, **arguments)
