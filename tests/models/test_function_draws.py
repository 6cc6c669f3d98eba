"""Functions drawn from a posterior: their moments are the model's, and they stay what they are."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.models import (
    FunctionDraws,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
)

DATA = toy_data(num_outputs=2)
XNEW = toy_data(4, seed=5)[0]
MANY = 2_500
PAIR = [gpflow.kernels.Matern32(lengthscales=0.7), gpflow.kernels.RBF(variance=1.3)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"depth": 2, "width": 2, "kernel": "Matern52"},
        {"depth": 2, "build": build_deep_gaussian_process, "width": 3, "hidden_ard": True},
        {"depth": 2, "output": "regression"},
        {"depth": 1, "kernel": [gpflow.kernels.LinearCoregionalization(PAIR, W=[[1, 0], [2, 1]])]},
        {"depth": 2, "output": "nearest_neighbours"},
    ],
    ids=["singular", "deep_gp", "regression", "mixed", "near"],
)
def test_moments_are_those_of_exact_draws(arguments: dict[str, Any]) -> None:
    model = tiny_model(data=DATA, **arguments)

    values = FunctionDraws(model, MANY, num_features=50, seed=1)(XNEW).numpy()

    exact = model.predict_f_samples(XNEW, MANY, seed=2).numpy()
    assert values.shape == exact.shape == (MANY, 4, 2)
    # 5 sigma for each moment.
    model_reference.assert_same_mean(values, exact, k_sigma=5.0)
    products, expected = (np.einsum("snp,smq->snpmq", f, f) for f in (values, exact))
    model_reference.assert_same_mean(products, expected, k_sigma=5.0)


@pytest.fixture(scope="module")
def functions() -> FunctionDraws:
    """Three functions of depth 2."""
    return FunctionDraws(tiny_model(2, data=DATA), 3, num_features=40, seed=0)


def test_functions_are_coherent_between_calls(functions: FunctionDraws) -> None:
    whole = functions(XNEW)

    for row in range(4):
        np.testing.assert_allclose(functions(XNEW[[row]])[:, 0], whole[:, row], atol=1e-10)
    own = functions(np.stack([XNEW, XNEW[::-1], XNEW[[1, 1, 2, 3]]]))
    np.testing.assert_allclose(own[0], whole[0], atol=1e-10)
    np.testing.assert_allclose(own[1], whole[1].numpy()[::-1], atol=1e-10)
    np.testing.assert_allclose(own[2], whole[2].numpy()[[1, 1, 2, 3]], atol=1e-10)


def test_functions_are_continuous_and_differentiable(functions: FunctionDraws) -> None:
    points, step = tf.constant(XNEW), 1e-5

    with tf.GradientTape() as tape:
        tape.watch(points)
        total = tf.reduce_sum(functions(points))

    gradient = tape.gradient(total, points).numpy()
    for column in range(2):
        shift = step * np.eye(2)[column]
        ahead, behind = functions(XNEW + shift), functions(XNEW - shift)
        slopes = tf.reduce_sum(ahead - behind, axis=[0, 2]) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, column], slopes, rtol=1e-5, atol=1e-5)


def test_other_models_are_refused() -> None:
    with pytest.raises(ValueError, match="model must be a deep Wishart process or a deep Gaus"):
        FunctionDraws(tiny_model(2, build_deep_inverse_wishart_process), 1)


def test_bad_arguments_are_refused() -> None:
    model = tiny_model(1)
    for name in ("num_samples", "num_features"):
        with pytest.raises(ValueError, match=f"{name} must be a positive integer, got 0"):
            FunctionDraws(model, **{"num_samples": 1, name: 0})
    model.layers[0].kernel = gpflow.kernels.Polynomial()
    with pytest.raises(UnsupportedKernelError, match="not from Polynomial"):
        FunctionDraws(model, 1)
