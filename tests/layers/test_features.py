"""Expected features."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from model_reference import GivenNoise, covariances, make_layer

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.random import as_seed


@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 5)])
@pytest.mark.parametrize("shared", [False, True])
def test_expected_features_are_those_without_noise(size: int, df: int, shared: bool) -> None:
    num_samples, num_targets = 2, 3
    joint = covariances(1 if shared else num_samples, size + num_targets)
    layer = make_layer(size, df)
    draw = layer.sample_inducing(joint[:, :size, :size], num_samples, as_seed(0))
    blocks = TargetBlocks(joint[:, :size, size:], tf.linalg.diag_part(joint[:, size:, size:]))

    expected = layer.expect(draw, blocks)

    noise = GivenNoise(tf.zeros([num_samples, num_targets, df], tf.float64))
    drawn = layer.condition(draw, blocks, noise)
    for ours, without_noise in zip(expected, drawn, strict=True):
        np.testing.assert_allclose(ours, without_noise, atol=1e-12)
