"""The deep inverse Wishart process: its bound, and where it becomes another known model."""

from __future__ import annotations

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.models import (
    DeepInverseWishartProcess,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
)

DATA = toy_data()


def tiny(depth: int = 2, **arguments: object) -> DeepInverseWishartProcess:
    return tiny_model(depth, build_deep_inverse_wishart_process, **arguments)


def test_parameter_paths_are_stable() -> None:
    assert set(gpflow.utilities.parameter_dict(tiny())) == {
        ".layers[0].kernel.variance",
        ".layers[0].kernel.lengthscales",
        ".layers[0].root",
        ".layers[0].root_scale",
        ".layers[0].df",
        ".layers[0].extra_df",
        ".layers[1].kernel.variance",
        ".layers[1].kernel.lengthscales",
        ".layers[1].pseudo_targets",
        ".layers[1].precision_tril",
        ".likelihood.variance",
        ".inducing_variable.Z",
    }


@pytest.mark.parametrize("depth", [2, 6])
def test_bound_and_gradient_are_finite_from_random_starts(depth: int) -> None:
    model = tiny(depth)
    for start in range(2):
        model_reference.randomise(model, seed=start, scale=0.5)
        with tf.GradientTape() as tape:
            bound = model.elbo(DATA, seed=start)
        gradients = tape.gradient(bound, model.trainable_variables)

        assert np.isfinite(bound)
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_compiled_is_eager() -> None:
    model = tiny()

    compiled = tf.function(lambda: model.elbo(DATA, seed=1), autograph=False)

    np.testing.assert_allclose(compiled(), model.elbo(DATA, seed=1), rtol=1e-8)


def test_expected_log_ratios_are_the_mean_of_sampled_ones() -> None:
    model = tiny(num_samples=2_000, expected_log_ratio=False)
    sampled = np.array([model.elbo_terms(DATA, seed=s).log_ratios[0] for s in range(10)])

    model.layers[0].expected_log_ratio = True

    exact = model.elbo_terms(DATA, seed=0).log_ratios[0].numpy()
    model_reference.assert_same_mean(sampled, exact, k_sigma=5.0)


def test_with_many_degrees_of_freedom_it_is_the_composition_of_its_kernels() -> None:
    model = tiny(3)
    for layer in model.hidden_layers:
        layer.df.assign(1e10)
        layer.extra_df.assign(1e-10)
        layer.root_scale.assign(1e-10)
    # A very wide deep GP with its prior as its posterior hands on its kernels' values, too.
    wide = tiny_model(3, build_deep_gaussian_process, width=100_000, num_samples=1)
    parameters = gpflow.utilities.parameter_dict(wide)
    shared = {
        path: value
        for path, value in gpflow.utilities.read_values(model).items()
        if path in parameters and parameters[path].shape == value.shape
    }
    gpflow.utilities.multiple_assign(wide, shared)
    for layer in wide.hidden_layers:
        model_reference.set_to_prior(layer)

    value, expected = model.elbo(DATA, seed=0), wide.elbo(DATA, seed=0)

    np.testing.assert_allclose(value, expected, rtol=0.02)
