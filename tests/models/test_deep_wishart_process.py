"""The bound of a deep Wishart process: a second implementation, and its estimators."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

DATA = toy_data()


@pytest.mark.parametrize(
    ("depth", "arguments"),
    [
        (1, {}),
        (2, {"posterior": "GW"}),
        (2, {"posterior": "A", "whiten": True}),
        (2, {"posterior": "AB", "width": 7}),
        (3, {"posterior": "AB", "data": toy_data(num_outputs=2)}),
    ],
)
def test_bound_is_that_of_dense_numpy_loops(depth: int, arguments: dict[str, Any]) -> None:
    data = arguments.get("data", DATA)
    model = tiny_model(depth, expected_log_ratio=False, **arguments)

    model_reference.assert_bound_is_that_of_dense_loops(model, data)


@pytest.mark.parametrize("depth", range(1, 7))
def test_bound_and_gradient_are_finite_from_random_starts(depth: int) -> None:
    model = tiny_model(depth, num_samples=2)
    for start in range(2):
        model_reference.randomise(model, seed=start, scale=0.5)
        with tf.GradientTape() as tape:
            bound = model.elbo(DATA, seed=start)
        gradients = tape.gradient(bound, model.trainable_variables)

        assert np.isfinite(bound)
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_expected_log_ratios_are_the_mean_of_sampled_ones() -> None:
    model = tiny_model(2, num_samples=2_000, expected_log_ratio=False)
    sampled = np.array([model.elbo_terms(DATA, seed=s).log_ratios[0] for s in range(10)])

    model.layers[0].expected_log_ratio = True

    exact = model.elbo_terms(DATA, seed=0).log_ratios[0].numpy()
    model_reference.assert_same_mean(sampled, exact, k_sigma=5.0)


def test_parameter_paths_are_stable() -> None:
    model = tiny_model(2)

    assert set(gpflow.utilities.parameter_dict(model)) == {
        ".layers[0].kernel.variance",
        ".layers[0].kernel.lengthscales",
        ".layers[0].bartlett_factor.concentration",
        ".layers[0].bartlett_factor.rate",
        ".layers[0].bartlett_factor.loc",
        ".layers[0].bartlett_factor.scale",
        ".layers[0].bartlett_factor.packed_row_mixing",
        ".layers[0].bartlett_factor.column_mixing_tril",
        ".layers[0].scale_mixture.root",
        ".layers[0].scale_mixture.root_scale",
        ".layers[0].scale_mixture.proportion",
        ".layers[1].kernel.variance",
        ".layers[1].kernel.lengthscales",
        ".layers[1].pseudo_targets",
        ".layers[1].precision_tril",
        ".likelihood.variance",
        ".inducing_variable.Z",
    }
