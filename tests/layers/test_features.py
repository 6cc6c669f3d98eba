"""Targets that are drawn in groups, and expected features."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import GivenNoise, condition, covariances, in_groups, make_layer

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers import GramLayer, InverseWishartLayer
from gpflow_dwp.random import as_seed


@pytest.mark.parametrize(
    ("layer", "width"),
    [
        (make_layer(4, 2), 2),
        (make_layer(3, 5), 5),
        (InverseWishartLayer(gpflow.kernels.SquaredExponential(), 3, df=3.0, seed=0), 4),
    ],
    ids=["singular", "wide", "inverse"],
)
def test_groups_are_drawn_as_each_would_be_alone(layer: GramLayer, width: int) -> None:
    num_samples, num_groups, num_copies, size = 2, 3, 4, layer.num_inducing
    num_targets = num_groups * num_copies
    joint = covariances(num_samples, size + num_targets)
    draw = layer.sample_inducing(joint[:, :size, :size], num_samples, as_seed(0))
    it, tt = joint[:, :size, size:], joint[:, size:, size:].numpy()
    noise = np.random.default_rng(0).normal(size=(num_samples, num_targets, width))
    groups = [slice(k * num_copies, (k + 1) * num_copies) for k in range(num_groups)]
    blocks = np.stack([tt[:, rows, rows] for rows in groups], axis=1)

    together = condition(
        layer, draw, TargetBlocks(it, tf.constant(blocks)), tf.constant(noise), full_cov=True
    )

    for index, rows in enumerate(groups):
        alone = condition(
            layer,
            draw,
            TargetBlocks(it[:, :, rows], tf.constant(tt[:, rows, rows])),
            tf.constant(noise[:, rows]),
            full_cov=True,
        )
        np.testing.assert_allclose(together.it[:, :, rows], alone.it, atol=1e-9)
        np.testing.assert_allclose(together.tt[:, index], alone.tt, atol=1e-9)


@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 5)])
@pytest.mark.parametrize("shared", [False, True])
def test_expected_features_are_those_without_noise(size: int, df: int, shared: bool) -> None:
    num_samples, num_targets = 2, 3
    joint = covariances(1 if shared else num_samples, size + num_targets)
    layer = make_layer(size, df)
    draw = layer.sample_inducing(joint[:, :size, :size], num_samples, as_seed(0))
    blocks = in_groups(
        TargetBlocks(joint[:, :size, size:], tf.linalg.diag_part(joint[:, size:, size:])),
        full_cov=False,
    )

    expected = layer.expect(draw, blocks)

    noise = GivenNoise(tf.zeros([num_samples, num_targets, df], tf.float64))
    drawn = layer.condition(draw, blocks, noise)
    for ours, without_noise in zip(expected, drawn, strict=True):
        np.testing.assert_allclose(ours, without_noise, atol=1e-12)
