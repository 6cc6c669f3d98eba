"""Every parameter of a model has a group, and gradients are arranged by it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.lab.benchmarks.gradients import gradients_by_group, parameter_groups
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process

GROUPS = {
    "inducing_variable",
    "kernels",
    "layer 1 bartlett",
    "layer 1 mixing",
    "layer 1 scale_mixture",
    "layer 2 precision_tril",
    "layer 2 pseudo_targets",
    "likelihood",
}


@pytest.fixture
def model() -> DeepWishartProcess:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(7, 2))
    data = X, np.sin(X.sum(axis=1, keepdims=True))
    return build_deep_wishart_process(data, 2, num_inducing=4, output="pseudo_targets")


def test_every_parameter_has_a_group(model: DeepWishartProcess) -> None:
    groups = parameter_groups(model)

    assert {groups[id(variable)] for variable in model.trainable_variables} == GROUPS


def test_gradients_of_a_group_are_one_row(model: DeepWishartProcess) -> None:
    variables = model.trainable_variables
    draws = [[tf.fill(v.shape, tf.cast(d, v.dtype)) for v in variables] for d in (1.0, 2.0)]

    found = gradients_by_group(model, draws)

    assert set(found) == GROUPS
    sizes = {group: values.shape for group, values in found.items()}
    assert sizes["inducing_variable"] == (2, 8) and sizes["likelihood"] == (2, 1)
    assert sum(columns for _, columns in sizes.values()) == sum(np.size(v) for v in variables)
    for values in found.values():
        np.testing.assert_array_equal(values, [[1.0], [2.0]] * np.ones_like(values))
