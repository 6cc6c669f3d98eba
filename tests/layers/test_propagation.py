"""The fold over layers: inducing points first, then targets in any batches."""

from __future__ import annotations

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.layers import GlobalInducingGPLayer, GramLayer, InverseWishartLayer, WishartLayer
from gpflow_dwp.layers.propagation import (
    InducingPath,
    propagate_targets,
    sample_inducing_path,
)
from gpflow_dwp.random import as_seed

NUM_SAMPLES = 3
SEED = as_seed(0)


class Stack:
    """Two hidden layers and an output layer, over 4 inducing points."""

    def __init__(self, num_hidden: int = 2) -> None:
        rng = np.random.default_rng(0)
        kernel = gpflow.kernels.SquaredExponential
        self.hidden: list[GramLayer] = [
            WishartLayer(kernel(), 2, 4, expected_log_ratio=False, seed=index)
            for index in range(num_hidden)
        ]
        self.output = GlobalInducingGPLayer(kernel(), 2, pseudo_targets=rng.normal(size=(4, 2)))
        for layer in (*self.hidden, self.output):
            model_reference.randomise(layer, seed=1, scale=0.2)
        self.points = tf.constant(rng.normal(size=(4, 2)))
        self.targets = tf.constant(rng.normal(size=(5, 2)))

    def path(self) -> InducingPath:
        return sample_inducing_path(self.hidden, self.output, self.points, NUM_SAMPLES, SEED)

    def propagate(
        self, path: InducingPath, targets: tf.Tensor, *, full_cov: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return propagate_targets(self.hidden, self.output, path, targets, SEED, full_cov=full_cov)


def test_joint_draws_are_independent_where_targets_coincide_under_a_white_kernel() -> None:
    stack = Stack()
    stack.hidden[0].kernel = gpflow.kernels.White()
    twice = tf.concat([stack.targets[:1], stack.targets[:1]], axis=0)

    _, covariance = stack.propagate(stack.path(), twice, full_cov=True)

    # Equal features would have the kernel's variance as their covariance.
    assert np.all(covariance[:, 0, 0] - covariance[:, 0, 1] > 1e-3)


@pytest.mark.parametrize("full_cov", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_compiled_with_unknown_number_of_targets(full_cov: bool, inverse: bool) -> None:
    stack = Stack(num_hidden=1)
    if inverse:
        stack.hidden = [InverseWishartLayer(gpflow.kernels.SquaredExponential(), 4, seed=0)]
    path = stack.path()

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)], autograph=False)
    def compiled(targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return stack.propagate(path, targets, full_cov=full_cov)

    for value, expected in zip(
        compiled(stack.targets),
        stack.propagate(path, stack.targets, full_cov=full_cov),
        strict=True,
    ):
        np.testing.assert_allclose(value, expected, atol=1e-10)
