"""The gate through which data come to models: shapes, columns, finite values, labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models.data_checks import check_data

X, Y = toy_data()
WITH_INF = np.where(np.arange(12)[:, None] == 7, np.inf, Y)

BAD: dict[str, tuple[Any, Any, str]] = {
    "columns of X": (X[:, :1], Y, "X must have 2 columns, as the model has, got shape (12, 1)"),
    "columns of Y": (X, Y[:, [0, 0]], "Y must have 1 column, as the model has"),
    "rows": (X, Y[:5], "X and Y must have as many rows as each other, got 12 and 5"),
    "one axis": (X, Y[:, 0], "Y must have two axes, [rows, columns]"),
    "NaN in X": (X * np.nan, Y, "X holds nan in row 1, column 1"),
    "infinite X": (-WITH_INF * X, Y, "X holds inf in row 8, column 1"),
    "infinite Y": (X, WITH_INF, "Y holds inf in row 8, column 1"),
    "an infinite tensor": (
        X,
        tf.constant(WITH_INF),
        "Y holds inf in row 8",
    ),
    "text": (X, tf.fill([12, 1], "a"), "Y must hold real numbers, got dtype string"),
    "complex": (X, tf.zeros([12, 1], tf.complex128), "Y must hold real numbers"),
    "a tensor of one axis": (tf.zeros([12]), Y, "X must have two axes"),
}


MODELS: dict[str, Callable[[], Any]] = {
    "stack": lambda: tiny_model(2),
    "with latent variables": lambda: build_latent_variable_deep_gp((X, Y), "LV-GP", num_inducing=5),
    "network": lambda: build_matrix_gaussian_network((X, Y), width=3),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_way_in_refuses_what_does_not_fit(make: Callable[[], Any]) -> None:
    model = make()
    posterior = model.posterior(2, seed=0)
    for inputs, observations, message in BAD.values():
        data = inputs, observations
        for use in (model.elbo, model.elbo_terms, model.predict_log_density, model.set_data):
            with pytest.raises(ValueError, match=re.escape(message)):
                use(data)
        with pytest.raises(ValueError, match=re.escape(message)):
            posterior.predict_log_density(data)
        with pytest.raises(ValueError, match=re.escape(message)):
            fit(model, data, 1)
    for predict in (model.predict_f, model.predict_y, model.predict_f_samples):
        for wrong, message in ((X[:, :1], "must have 2 columns"), (X[None], "must have two axes")):
            with pytest.raises(ValueError, match=f"Xnew {message}"):
                predict(wrong)


def test_while_compiling_shapes_are_checked_and_unknown_ones_at_run_time() -> None:
    model = tiny_model(1)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float64)] * 2, autograph=False)
    def bound(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return model.elbo((X, Y), seed=0)

    np.testing.assert_allclose(bound(X, Y), model.elbo((X, Y), seed=0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        bound(X, Y[:, [0, 0]])
    with pytest.raises(ValueError, match="Y must have 1 column"):
        tf.function(model.elbo, autograph=False)((X, Y[:, [0, 0]]))


def test_half_a_row_of_a_joint_likelihood_may_not_be_missing() -> None:
    """Catches observations of a joint likelihood that would be dropped without a word."""
    gone = np.where(np.arange(12)[:, None] == 7, np.nan, Y)
    model = build_matrix_gaussian_network((X, np.hstack([Y, -Y])), width=3)

    check_data(model, X, np.hstack([gone, gone]))
    with pytest.raises(ValueError, match="Y must hold .* got nan in row 8, column 1"):
        check_data(model, X, np.hstack([gone, Y]))


def test_a_number_in_place_of_a_parameter_is_named() -> None:
    """Catches TensorFlow's word of a float that is added to a double."""
    model = tiny_model(1)
    model.likelihood.variance = 0.01
    with pytest.raises(ValueError, match="likelihood.variance must be a parameter, got 0.01"):
        model.elbo((X, Y))
