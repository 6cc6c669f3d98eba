"""What both output layers with a Gaussian posterior do, against explicit inverses."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers import GlobalInducingGPLayer, RegressionGPLayer

M, C, N, Q, S = 4, 6, 3, 2, 2
"""Inducing points, rows of a regression, targets, outputs and draws."""
NOISE = 0.3
JOINT = model_reference.random_covariance(np.random.default_rng(1), S, M + C + N)
K, K_IC, K_IT = (JOINT[:, :M, part] for part in np.split(np.arange(M + C + N), [M, M + C]))
K_TT = JOINT[:, M + C :, M + C :]


def pseudo_target_layer(**arguments: Any) -> GlobalInducingGPLayer:
    rng = np.random.default_rng(0)
    arguments = {"num_outputs": Q, "pseudo_targets": rng.normal(size=(M, Q)), **arguments}
    kernel = arguments.pop("kernel", gpflow.kernels.SquaredExponential())
    layer = GlobalInducingGPLayer(kernel, **arguments)
    layer.precision_tril.assign(reference.random_tril(rng, M, M))
    return layer


def test_functions_may_have_precisions_of_their_own() -> None:
    """Catches one Λ for all, which makes noise as surely known as the function it is around."""
    rng, kernels = np.random.default_rng(2), [gpflow.kernels.Matern32() for _ in range(2)]
    targets, trils = rng.normal(size=(M, 2)), np.stack([reference.random_tril(rng, M, M)] * 2)
    trils[1] *= 3.0
    several = gpflow.kernels.SeparateIndependent(kernels)
    both = GlobalInducingGPLayer(several, 2, pseudo_targets=targets, has_own_precisions=True)
    both.precision_tril.assign(trils)
    found, log_ratio = both.infer_inducing(tf.constant(np.stack([K, 2.0 * K], axis=1))), 0.0
    for i, (kernel, tril) in enumerate(zip(kernels, trils, strict=True)):
        alone = GlobalInducingGPLayer(kernel, 1, pseudo_targets=targets[:, i : i + 1])
        alone.precision_tril.assign(tril)
        own = alone.infer_inducing(tf.constant((1.0 + i) * K))
        np.testing.assert_allclose(found.weights[..., i : i + 1], own.weights, rtol=1e-10)
        np.testing.assert_allclose(found.inverse[:, i], own.inverse, rtol=1e-10)
        log_ratio += own.log_ratio
    np.testing.assert_allclose(found.log_ratio, log_ratio, rtol=1e-10)
    with pytest.raises(ValueError, match="needs a kernel for each function, got a Matern32"):
        GlobalInducingGPLayer(kernels[0], 2, pseudo_targets=targets, has_own_precisions=True)


def regression_layer(**arguments: Any) -> RegressionGPLayer:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(C, 3)), rng.normal(size=(C, Q))
    arguments = {"noise_variance": NOISE, "jitter": 0.0, **arguments}
    return RegressionGPLayer(gpflow.kernels.SquaredExponential(), M, *rows, **arguments)


def infer(layer: Any) -> Any:
    cross = None if layer.inputs is None else tf.constant(K_IC)
    return layer.infer_inducing(tf.constant(K), cross)


def posterior_of_u(layer: Any, s: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean [M, Q] and covariance [M, M] by Bayes' rule."""
    if layer.inputs is None:
        return model_reference.numpy_global_inducing(layer, K[s])[:2]
    # y = Kci Kii⁻¹ u + noise
    precision, design = np.eye(C) / NOISE, np.linalg.solve(K[s], K_IC[s]).T
    covariance = np.linalg.inv(np.linalg.inv(K[s]) + design.T @ precision @ design)
    return covariance @ design.T @ precision @ layer.targets.numpy(), covariance


def targets(*, full_cov: bool) -> TargetBlocks:
    tt = K_TT if full_cov else np.diagonal(K_TT, axis1=1, axis2=2)
    return TargetBlocks(tf.constant(K_IT), tf.constant(tt))


each_layer = pytest.mark.parametrize("layer", [pseudo_target_layer(), regression_layer()], ids=type)
both = pytest.mark.parametrize("full_cov", [False, True])


@each_layer
@both
def test_mean_and_covariance_at_targets(layer: Any, full_cov: bool) -> None:
    mean, covariance = layer.mix(*layer.condition(infer(layer), targets(full_cov=full_cov)))

    for s in range(S):
        mean_u, covariance_u = posterior_of_u(layer, s)
        interpolation = np.linalg.solve(K[s], K_IT[s]).T
        expected = K_TT[s] - interpolation @ (K[s] - covariance_u) @ interpolation.T
        expected = expected if full_cov else np.diag(expected)
        np.testing.assert_allclose(mean[s], interpolation @ mean_u, atol=1e-10)
        np.testing.assert_allclose(covariance[s], expected, atol=1e-10)


@both
def test_mixed_functions_entry_by_entry(full_cov: bool) -> None:
    """Against the covariance of W g, written out over points and outputs."""
    mixing = np.random.default_rng(3).normal(size=(3, Q))
    kernel = gpflow.kernels.LinearCoregionalization(
        [gpflow.kernels.SquaredExponential() for _ in range(Q)], W=mixing
    )
    layer, mixed = pseudo_target_layer(), pseudo_target_layer(num_outputs=3, kernel=kernel)
    blocks = targets(full_cov=full_cov)
    draw = mixed.infer_inducing(tf.stack([tf.constant(K)] * Q, axis=1))

    of_both = TargetBlocks(*(tf.stack([block] * Q, axis=1) for block in blocks[:2]))
    mean, covariance = mixed.mix(*mixed.condition(draw, of_both))

    plain, shared = layer.condition(infer(layer), blocks)
    np.testing.assert_allclose(draw.log_ratio, infer(layer).log_ratio)
    np.testing.assert_allclose(mean, plain @ mixing.T, atol=1e-12)
    for output, scale in enumerate(np.diag(mixing @ mixing.T)):
        np.testing.assert_allclose(covariance[:, output], scale * shared, atol=1e-12)


def test_precisions_are_weights_of_the_posterior_alone() -> None:
    precisions = np.linspace(0.2, 1.4, C)
    layer, same = regression_layer(precisions=precisions), regression_layer(weights=precisions)

    for ours, theirs in zip(infer(layer)[:3], infer(same)[:3], strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert layer.precisions.trainable and layer.weights is None


def test_singular_covariances_need_no_jitter_and_variances_are_never_negative() -> None:
    layer, root = pseudo_target_layer(), np.random.default_rng(2).normal(size=(1, M, 1))
    draw = layer.infer_inducing(tf.constant(root @ root.swapaxes(1, 2)))
    assert all(np.all(np.isfinite(part)) for part in draw)
    layer.precision_tril.assign(1e8 * np.eye(M))
    at_inducing = TargetBlocks(tf.constant(K), tf.constant(np.diagonal(K, axis1=1, axis2=2)))

    _, variance = layer.condition(infer(layer), at_inducing)

    assert np.all(variance.numpy() >= 0.0)
    np.testing.assert_allclose(variance, np.zeros((S, M)), atol=1e-12)
