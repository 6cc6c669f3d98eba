"""What all deep kernel processes share: the exact limit, minibatches, and GPflow's contract."""

from __future__ import annotations

from typing import Any

import gpflow
import gpflow.kernels as gk
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from model_reference import BUILDERS, assert_bound_is_that_of_dense_loops, tiny_model, toy_data

from gpflow_dwp import models
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    GlobalInducingGramLayer,
    GramLayer,
    WishartLayer,
)

DATA = toy_data()

every_model = pytest.mark.parametrize("kind", BUILDERS)


def output_layer(
    num_inducing: int = 5, num_outputs: int = 1, **options: Any
) -> GlobalInducingGPLayer:
    pseudo_targets = np.zeros((num_inducing, num_outputs))
    return GlobalInducingGPLayer(
        gk.SquaredExponential(), num_outputs, pseudo_targets=pseudo_targets, **options
    )


def hidden_layer(num_inducing: int = 5, kernel: Any = None, kind: Any = WishartLayer) -> GramLayer:
    return kind(kernel or gk.SquaredExponential(), 2, num_inducing, seed=0)


def test_depth_1_with_all_points_inducing_is_gpflows_exact_regression() -> None:
    X, Y = toy_data(num_outputs=2)
    kernel = gk.Matern32(variance=1.3, lengthscales=[0.7, 1.9])
    layer = GlobalInducingGPLayer(kernel, 2, pseudo_targets=Y, precision=5.0)
    model = models.DeepKernelProcess([layer], gpflow.likelihoods.Gaussian(0.2), X, num_data=len(X))
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.2)

    np.testing.assert_allclose(model.elbo((X, Y)), exact.log_marginal_likelihood(), atol=1e-6)
    Xnew = toy_data(7, seed=5)[0]
    for full_cov in (False, True):
        expected = exact.predict_f(Xnew, full_cov=full_cov)
        for ours, wanted in zip(model.predict_f(Xnew, full_cov), expected, strict=True):
            np.testing.assert_allclose(ours, wanted, atol=1e-8)


@tf.autograph.experimental.do_not_convert  # of GPflow's maps over functions
def test_functions_with_kernels_of_their_own_are_those_of_gpflow() -> None:
    """Against its SVGP with the same posterior; catches W the other way round, too, as [2, 2]."""
    X, Y = toy_data(num_outputs=2)
    parts = [gk.Matern32(lengthscales=0.7), gk.SquaredExponential(variance=1.3)]
    kernel = gk.LinearCoregionalization(parts, W=[[1.0, 0.3], [-2.0, 0.5]])
    layer = GlobalInducingGPLayer(kernel, 2, pseudo_targets=Y, precision=10.0)
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    model = models.DeepKernelProcess([layer], likelihood, X, num_data=len(X))
    covariances = np.array([part(X) for part in parts])
    smoothed = covariances @ np.linalg.inv(covariances + 0.1 * np.eye(len(X)))
    points = gpflow.inducing_variables.InducingPoints(X)
    theirs = gpflow.models.SVGP(
        kernel,
        likelihood,
        gpflow.inducing_variables.SharedIndependentInducingVariables(points),
        num_latent_gps=2,
        whiten=False,
        q_mu=np.einsum("lnm,ml->nl", smoothed, Y),
        q_sqrt=np.linalg.cholesky(covariances - smoothed @ covariances + 1e-12 * np.eye(len(X))),
    )

    np.testing.assert_allclose(model.elbo((X, Y)), theirs.elbo((X, Y)), rtol=1e-5)
    Xnew = toy_data(3, seed=5)[0]
    for full_cov in (False, True):
        expected = theirs.predict_f(Xnew, full_cov)
        for ours, wanted in zip(model.predict_f(Xnew, full_cov), expected, strict=True):
            np.testing.assert_allclose(ours, wanted, atol=1e-5)
    loaded = models.model_from_bytes(models.model_to_bytes(model))
    np.testing.assert_array_equal(loaded.elbo((X, Y)), model.elbo((X, Y)))
    assert loaded.output_layer.mixing is loaded.output_layer.kernel.W


@every_model
def test_average_over_disjoint_batches_is_the_full_data_term(kind: str) -> None:
    model = tiny_model(2, kind)

    full = model.elbo_terms(DATA, seed=1)
    rows = [[part[start::2] for part in DATA] for start in (0, 1)]
    batches = [model.elbo_terms(tuple(batch), seed=1) for batch in rows]

    np.testing.assert_allclose(np.mean([terms.data for terms in batches]), full.data, rtol=1e-10)
    for terms in batches:
        np.testing.assert_array_equal(terms.log_ratios, full.log_ratios)


@every_model
def test_gradient_by_the_kernels_is_that_of_the_bound_with_its_jitter(kind: str) -> None:
    output = "pseudo_targets" if kind == "gaussian" else "regression"
    model = tiny_model(2, kind, output=output, jitter=0.05)
    parts = [layer.kernel for layer in model.layers] + [model.likelihood]
    variables = [variable for part in parts for variable in part.trainable_variables]
    if output == "regression":
        variables.append(model.output_layer.noise_variance.unconstrained_variable)
    model_reference.assert_gradients_are_finite_differences(
        lambda: model.elbo(DATA, seed=1), variables
    )


def test_training_loss_closure_can_be_minimised() -> None:
    model = tiny_model(1)
    batches = tf.data.Dataset.from_tensor_slices(DATA).repeat().shuffle(12, seed=0).batch(4)
    loss = model.training_loss_closure(iter(batches), compile=False)
    optimizer = tf_keras.optimizers.Adam(0.1)
    before = -model.elbo(DATA, seed=0)

    for _ in range(4):
        optimizer.minimize(loss, model.trainable_variables)

    assert -model.elbo(DATA, seed=0) < before - 10.0


@pytest.mark.parametrize(
    "kind", ["wishart", *(pytest.param(name, marks=pytest.mark.slow) for name in [*BUILDERS][1:])]
)
def test_bounds_of_deep_models_are_the_same_in_float32(kind: str) -> None:
    """A rounding error that is small in one layer would be noise in the next.

    Matrices are nearly singular: forty points within a few lengthscales, and pseudo-targets that
    are known to 1e-3.
    """
    # Noise is a function of a point's digits, of which float32 must hold all.
    X = np.linspace(-1.0, 1.0, 80, dtype=np.float32)[:, None].astype(np.float64)
    Y = np.sin(3.0 * X)
    bounds = []
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            settings: Any = {"num_inducing": 40, "output": "pseudo_targets", "num_samples": 3}
            model = BUILDERS[kind]((X, Y), 3, **settings)
            model.likelihood.variance.assign(0.01)
            bounds.append([float(model.elbo((X, Y), seed=0)) / 80.0])
            layer = model.output_layer
            layer.precision_tril.assign(1e3 * np.eye(40))
            layer.pseudo_targets.assign(np.sin(3.0 * model.inducing_variable.Z.numpy()))
            bounds[-1].append(float(model.elbo((X, Y), seed=1)) / 80.0)

    # With features' variances in float32: 0.002 for Gaussian processes of -14; with all, 0.01.
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-6, atol=1e-5)


def build(layers: list[Any], likelihood: Any = None, **settings: Any) -> models.DeepKernelProcess:
    likelihood = likelihood or gpflow.likelihoods.Gaussian()
    return models.DeepWishartProcess(layers, likelihood, DATA[0][:5], num_data=12, **settings)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "layers must end in an output layer, got NoneType"),
        ([output_layer(), hidden_layer()], "must end in an output layer, got WishartLayer"),
        ([hidden_layer(4), output_layer()], r"layers\[0\] is made for 4 inducing .* has 5"),
        ([hidden_layer(), output_layer(6)], r"layers\[1\] is .* rows of its pseudo_targets.* 5"),
        (
            [output_layer(mean_function=gpflow.functions.Linear(np.ones((2, 3))))],
            r"mean_function must return shape \[3, 1\] .* got \(3, 3\)",
        ),
        (
            [hidden_layer(kernel=gk.SeparateIndependent([gk.RBF()])), output_layer()],
            "SeparateIndependent cannot be a hidden layer's kernel: it has several outputs",
        ),
        ([layer := hidden_layer(), layer, output_layer()], r"layers\[1\] must be .* of its own"),
        (
            [hidden_layer(kernel=gk.RBF(active_dims=[0, 2])), output_layer()],
            "SquaredExponential cannot be the first kernel: .* 2 columns; look at active_dims",
        ),
        (
            [hidden_layer(), hidden_layer(kernel=gk.RBF(lengthscales=[1.0, 2.0])), output_layer()],
            r"lengthscales has shape \[2\].* ARD in the first layer only",
        ),
    ],
)
def test_layers_that_do_not_fit_are_refused(layers: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(layers)


@pytest.mark.parametrize(
    ("kind", "depth", "arguments"),
    [
        ("wishart", 2, {"posterior": "GW", "data": toy_data(num_outputs=2)}),
        ("wishart", 3, {"posterior": "AB", "width": 7}),
        ("gaussian", 1, {}),
        ("gaussian", 2, {"width": 7}),
        ("gaussian", 3, {"width": 2, "data": toy_data(num_outputs=2)}),
    ],
)
def test_bound_is_that_of_dense_numpy_loops(
    kind: str, depth: int, arguments: dict[str, Any]
) -> None:
    sampled = {"expected_log_ratio": False} if kind == "wishart" else {}
    model = tiny_model(depth, kind, num_samples=2, **sampled, **arguments)

    assert_bound_is_that_of_dense_loops(model, arguments.get("data", DATA))


PAIR = GlobalInducingGramLayer, WishartLayer


@pytest.mark.parametrize("kinds", [PAIR, PAIR[::-1]])
def test_bound_of_layers_of_two_kinds_is_that_of_dense_loops(kinds: Any) -> None:
    layers = [*(hidden_layer(kind=kind) for kind in kinds), output_layer()]
    for layer in layers[:-1]:
        layer.expected_log_ratio = False
    assert_bound_is_that_of_dense_loops(build(layers, num_samples=2), DATA)


@every_model
def test_bound_names_the_layer_whose_factorisation_fails(kind: str) -> None:
    model = tiny_model(3, kind)
    model.layers[1].kernel.variance.unconstrained_variable.assign(np.nan)

    with pytest.raises(CholeskyError, match=r"layers\[1\]: .* a layer's K_ii failed"):
        model.elbo(DATA)


def test_likelihoods_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="likelihood must be an instance of Likelihood, got str"):
        build([output_layer()], likelihood="gaussian")
    with pytest.raises(ValueError, match="Softmax needs 3 latent functions, .* num_outputs=1"):
        build([output_layer()], likelihood=gpflow.likelihoods.Softmax(3))
