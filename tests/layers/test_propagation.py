"""The fold over layers: inducing points first, then targets in any batches."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model

from gpflow_dwp.layers.propagation import propagate_targets, sample_inducing_path
from gpflow_dwp.random import as_seed

SEED = as_seed(0)
TARGETS = tf.constant(np.random.default_rng(0).normal(size=(5, 2)))


def test_joint_draws_are_independent_where_targets_coincide_under_a_white_kernel() -> None:
    model = tiny_model(2)
    model.layers[0].kernel = gpflow.kernels.White()
    layers, points = (model.hidden_layers, model.output_layer), model.inducing_variable.Z
    path, twice = sample_inducing_path(*layers, points, 3, SEED), tf.gather(TARGETS, [0, 0])

    _, covariance = propagate_targets(*layers, path, twice, SEED, full_cov=True)

    # Functions at equal features would not differ.
    difference = tf.linalg.trace(covariance) - 2.0 * covariance[:, 0, 1]
    assert np.all(difference > 1e-3)


@pytest.mark.parametrize("full_cov", [False, True])
@pytest.mark.parametrize("build", ["wishart", "inverse_wishart"])
def test_compiled_with_unknown_number_of_targets(full_cov: bool, build: str) -> None:
    model = tiny_model(2, build)
    layers = model.hidden_layers, model.output_layer
    path = sample_inducing_path(*layers, model.inducing_variable.Z, 3, SEED)

    def propagate(targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return propagate_targets(*layers, path, targets, SEED, full_cov=full_cov)

    signature = [tf.TensorSpec([None, 2], tf.float64)]
    compiled = tf.function(propagate, input_signature=signature, autograph=False)
    for value, expected in zip(compiled(TARGETS), propagate(TARGETS), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-10)
