"""What data a model takes, and what observations each likelihood does."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as gl
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.likelihoods.observed import accepted_observations
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import AcceptedObservations
from gpflow_dwp.models.data_checks import check_data, check_observations

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
    "an infinite tensor": (X, tf.constant(WITH_INF), "Y holds inf in row 8"),
    "text": (X, tf.fill([12, 1], "a"), "Y must hold real numbers, got dtype string"),
    "complex": (X, tf.zeros([12, 1], tf.complex128), "Y must hold real numbers"),
    "a tensor of one axis": (tf.zeros([12]), Y, "X must have two axes"),
}


MODELS: dict[str, Callable[[], Any]] = {
    "stack": lambda: tiny_model(1),
    "with latent variables": lambda: build_latent_variable_deep_gp((X, Y), "LV-GP", num_inducing=5),
    "network": lambda: build_matrix_gaussian_network((X, Y), width=3),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_way_in_refuses_what_does_not_fit(make: Callable[[], Any]) -> None:
    model = make()
    posterior = model.posterior(2, seed=0)
    for inputs, observations, message in BAD.values():
        data = inputs, observations
        uses = model.elbo, model.elbo_terms, model.predict_log_density, model.set_data
        for use in (*uses, posterior.predict_log_density, functools.partial(fit, model)):
            with pytest.raises(ValueError, match=re.escape(message)):
                use(data)
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


REAL = [[-1.5], [0.0], [2.0]]
ZERO_ONE, ONE_HOT = [[0.0], [1.0]], np.eye(3)
COUNTS = [[0.0], [3.0], [1.0]]
CLASSES = [[2.0], [0.0], [1.0]]
OPEN = [[0.1], [0.9]]


# What fits, and what does not.
TABLE: list[tuple[Callable[[], Any], list[Any], list[Any]]] = [
    (gl.Gaussian, [REAL], []),
    (gl.GaussianMC, [REAL], []),
    (gl.StudentT, [REAL], []),
    (GammaGaussian, [REAL], []),
    (gl.HeteroskedasticTFPConditional, [REAL], [np.ones((3, 2))]),
    (gl.Bernoulli, [ZERO_ONE, ONE_HOT], [REAL, [[-1.0], [1.0]], OPEN]),
    (gl.Poisson, [COUNTS, np.array(COUNTS)[:, [0, 0]]], [REAL, OPEN, [[-1.0]]]),
    (gl.Exponential, [COUNTS, OPEN], [REAL]),
    (gl.Gamma, [OPEN, [[1.0], [7.5]]], [REAL, COUNTS]),
    (gl.Beta, [OPEN], [REAL, ZERO_ONE, COUNTS]),
    (lambda: gl.Ordinal(np.array([-1.0, 1.0])), [CLASSES], [REAL, COUNTS, OPEN, [[-1.0]]]),
    (lambda: gl.Softmax(3), [CLASSES], [REAL, COUNTS, ONE_HOT, OPEN, [[-1.0]]]),
    (lambda: gl.MultiClass(3), [CLASSES], [REAL, COUNTS, ONE_HOT, OPEN, [[-1.0]]]),
    (
        lambda: gl.SwitchedLikelihood([gl.Gaussian(), gl.Poisson()]),
        [[[-0.5, 0.0], [3.0, 1.0]]],
        [[[-0.5, 1.0]], [[1.0, 2.0]], [[1.0, 0.5]]],
    ),
]


@pytest.mark.parametrize(("make", "fitting", "unfit"), TABLE)
def test_what_fits_is_taken_and_all_else_refused(
    make: Callable[[], Any], fitting: list[Any], unfit: list[Any]
) -> None:
    likelihood = make()

    for Y in fitting:
        np.testing.assert_array_equal(check_observations(likelihood, Y), Y)
    for Y in unfit:
        with pytest.raises(ValueError, match=f"^Y must .* {type(likelihood).__name__}, got"):
            check_observations(likelihood, Y)


def test_the_table_has_all_of_gpflows_likelihoods() -> None:
    tried = {type(make()) for make, _, _ in TABLE}
    classes = [each for _, each in inspect.getmembers(gl, inspect.isclass)]
    concrete = {
        each for each in classes if issubclass(each, gl.Likelihood) and not inspect.isabstract(each)
    }
    # What the table's likelihood of two functions inherits from, and one of labelled rows.
    bases = {gl.MultiLatentTFPConditional, gl.MultiLatentLikelihood, gl.MonteCarloLikelihood}
    assert concrete - tried <= bases


class _Even(gl.Gaussian):
    """Says what it takes."""

    def accepted_observations(self) -> AcceptedObservations:
        return AcceptedObservations("even numbers", lambda Y: tf.equal(Y % 2.0, 0.0))


def test_a_users_likelihood_inherits_or_says_what_it_takes() -> None:
    with pytest.raises(ValueError, match=r"whole numbers from 0 .*NegativeBinomial, got 0\.5"):
        check_observations(type("NegativeBinomial", (gl.Poisson,), {})(), [[0.5]])
    with pytest.raises(ValueError, match="even numbers for the likelihood _Even, got 3 in row 2"):
        check_observations(_Even(), [[2.0], [3.0]])


def test_conditions_are_those_of_compiled_code_in_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        for make, fitting, _ in TABLE:
            accepts = tf.function(accepted_observations(make()).accepts, autograph=False)
            for Y in fitting:
                assert np.all(accepts(tf.constant(Y, tf.float32)))
