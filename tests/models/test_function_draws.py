"""Functions drawn from a posterior: their moments are the model's, and they stay what they are."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp import models

DATA = toy_data(num_outputs=2)
XNEW = toy_data(4, seed=5)[0]
MANY = 2_500
PAIR = [gpflow.kernels.Matern32(lengthscales=0.7), gpflow.kernels.RBF(variance=1.3)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"depth": 2, "width": 2, "kernel": "Matern52"},
        {"depth": 2, "build": "gaussian", "width": 3, "hidden_ard": True},
        {"depth": 2, "output": "regression"},
        {"depth": 1, "kernel": [gpflow.kernels.LinearCoregionalization(PAIR, W=[[1, 0], [2, 1]])]},
        {"depth": 2, "output": "nearest_neighbours"},
    ],
    ids=["singular", "deep_gp", "regression", "mixed", "near"],
)
def test_moments_are_those_of_exact_draws(arguments: dict[str, Any]) -> None:
    model = tiny_model(data=DATA, **arguments)

    values = models.FunctionDraws(model, MANY, num_features=50, seed=1)(XNEW).numpy()

    exact = model.predict_f_samples(XNEW, MANY, seed=2).numpy()
    assert values.shape == exact.shape == (MANY, 4, 2)
    # 5 sigma for each moment.
    model_reference.assert_same_mean(values, exact, k_sigma=5.0)
    products, expected = (np.einsum("snp,smq->snpmq", f, f) for f in (values, exact))
    model_reference.assert_same_mean(products, expected, k_sigma=5.0)


@pytest.fixture(scope="module")
def functions() -> models.FunctionDraws:
    """Three functions of depth 2."""
    return models.FunctionDraws(tiny_model(2, data=DATA), 3, num_features=40, seed=0)


def test_functions_are_coherent_between_calls(functions: models.FunctionDraws) -> None:
    whole = functions(XNEW)

    for row in range(4):
        np.testing.assert_allclose(functions(XNEW[[row]])[:, 0], whole[:, row], atol=1e-10)
    orders = [0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 2, 3]
    own = functions(np.stack([XNEW[order] for order in orders]))
    for row, order in enumerate(orders):
        np.testing.assert_allclose(own[row], whole[row].numpy()[order], atol=1e-10)


def test_functions_are_continuous_and_differentiable(functions: models.FunctionDraws) -> None:
    points = tf.Variable(XNEW)
    model_reference.assert_gradients_are_finite_differences(
        lambda: tf.reduce_sum(functions(tf.convert_to_tensor(points))), [points]
    )


def test_other_models_and_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="model must be a deep Wishart process or a deep Gaus"):
        models.FunctionDraws(tiny_model(2, "inverse_wishart"), 1)
    for name in ("num_samples", "num_features"):
        with pytest.raises(ValueError, match=f"{name} must be a positive integer, got 0"):
            models.FunctionDraws(tiny_model(1), **{"num_samples": 1, name: 0})
