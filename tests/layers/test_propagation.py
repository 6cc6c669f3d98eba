"""The fold over layers: inducing points first, then targets in any batches."""

from __future__ import annotations

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    InducingPath,
    WishartLayer,
    propagate_jointly,
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
        self.hidden = [
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
        parts = self.hidden, self.output, path
        if full_cov:
            return propagate_jointly(*parts, targets, SEED)
        return propagate_targets(*parts, targets[:, None], SEED)


def test_without_hidden_layers_all_draws_are_one() -> None:
    stack = Stack(num_hidden=0)
    path = stack.path()

    mean, variance = stack.propagate(path, stack.targets)

    assert path.hidden == ()
    assert mean.shape == (1, 5, 2) and variance.shape == (1, 5)
    assert [ratio.shape for ratio in path.log_ratios] == [(1,)]


def test_targets_do_not_depend_on_their_batch() -> None:
    stack = Stack()
    path = stack.path()
    mean, variance = stack.propagate(path, stack.targets)

    rows = [4, 1, 1]
    some_mean, some_variance = stack.propagate(path, tf.gather(stack.targets, rows))

    np.testing.assert_allclose(some_mean, tf.gather(mean, rows, axis=1), atol=1e-12)
    np.testing.assert_allclose(some_variance, tf.gather(variance, rows, axis=1), atol=1e-12)


def test_joint_draws_are_independent_where_targets_coincide_under_a_white_kernel() -> None:
    stack = Stack()
    stack.hidden[0].kernel = gpflow.kernels.White()
    twice = tf.concat([stack.targets[:1], stack.targets[:1]], axis=0)

    _, covariance = stack.propagate(stack.path(), twice, full_cov=True)

    # Equal features would have the kernel's variance as their covariance.
    assert np.all(covariance[:, 0, 0] - covariance[:, 0, 1] > 1e-3)


def test_layers_have_draws_of_their_own() -> None:
    stack = Stack()
    stack.hidden = [model_reference.make_layer(4, 2, whiten=True) for _ in range(2)]

    first, second = stack.path().hidden

    # Equal parameters; whitened roots differ by their draws alone.
    whitened = [tf.linalg.triangular_solve(d.covariance.tril, d.root) for d in (first, second)]
    assert np.all(np.abs(whitened[0][..., 0] - whitened[1][..., 0]) > 1e-6)


def test_gram_matrices_are_those_that_the_layers_draw() -> None:
    stack = Stack(num_hidden=1)

    path = stack.path()

    covariance = stack.hidden[0].kernel(stack.points)[None]
    draws = model_reference.numpy_mixing(stack.hidden[0])
    assert path.hidden[0].gram.shape == (NUM_SAMPLES, 4, 4)
    roots = path.hidden[0].root
    np.testing.assert_allclose(path.hidden[0].gram, roots @ tf.linalg.matrix_transpose(roots))
    row_mixing = model_reference.numpy_row_mixing(stack.hidden[0], covariance[0].numpy())
    bartlett = np.linalg.solve(row_mixing, roots) @ np.linalg.inv(draws[1])
    # What is above the diagonal of T is zero.
    np.testing.assert_allclose(bartlett[:, 0, 1], 0.0, atol=1e-9)
    assert np.all(np.diagonal(bartlett[:, :2], axis1=1, axis2=2) > 0.0)


@pytest.mark.parametrize("full_cov", [False, True])
def test_compiled_with_unknown_number_of_targets(full_cov: bool) -> None:
    stack = Stack(num_hidden=1)
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
