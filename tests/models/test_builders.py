"""Ready-made models: what every argument does, and what is refused."""

from __future__ import annotations

import operator
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as gl
from model_reference import BUILDERS, toy_data

from gpflow_dwp import fit
from gpflow_dwp.layers import GlobalInducingGPLayer, RegressionGPLayer
from gpflow_dwp.models import (
    KERNELS,
    DeepGaussianProcess,
    DeepInverseWishartProcess,
    DeepWishartProcess,
    FunctionDraws,
)
from gpflow_dwp.models.named_kernels import kernel_name

X, Y = toy_data(12)

ANALYTIC = {"expected_log_ratio": True}


def build(data: Any = (X, Y), depth: int = 2, *, builder: str = "wishart", **arguments: Any) -> Any:
    return BUILDERS[builder](data, depth, **{"num_inducing": 5, **arguments})


@pytest.mark.parametrize(
    ("builder", "model_type"),
    [
        ("wishart", DeepWishartProcess),
        ("gaussian", DeepGaussianProcess),
        ("inverse_wishart", DeepInverseWishartProcess),
    ],
)
def test_defaults(builder: str, model_type: type) -> None:
    model = BUILDERS[builder]((X, Y))
    assert type(model) is model_type and len(model.hidden_layers) == 2
    assert model.inducing_variable.Z.shape == (12, 2)
    assert (model.num_data, model.num_samples) == (12, 2)
    np.testing.assert_allclose(model.likelihood.variance, np.exp(-4.0))
    assert isinstance(model.output_layer, RegressionGPLayer)
    np.testing.assert_allclose(model.output_layer.noise_variance, np.exp(-4.0))
    assert model.layers[0].kernel.lengthscales.shape == (2,)
    assert model.layers[1].kernel.lengthscales.shape == ()
    assert [layer.jitter for layer in model.hidden_layers] == [1e-6, 1e-6]


@pytest.mark.parametrize(
    ("builder", "arguments", "expected"),
    [
        ("wishart", {}, {"df": 2, "bartlett_factor.family": "AB", "whiten": False, **ANALYTIC}),
        ("gaussian", {}, {"width": 2}),
        ("inverse_wishart", {}, ANALYTIC),
        ("wishart", {"width": 7, "posterior": "A"}, {"df": 7, "bartlett_factor.family": "A"}),
    ],
)
def test_defaults_and_arguments_of_layers(
    builder: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    for layer in build(depth=3, builder=builder, jitter=1e-4, **arguments).hidden_layers:
        for path, value in {"jitter": 1e-4, **expected}.items():
            assert operator.attrgetter(path)(layer) == value


def test_kmeans_starts_on_centres_with_the_observations_of_the_nearest_row() -> None:
    model = build(inducing="kmeans", num_inducing=4, output="pseudo_targets")
    Z = model.inducing_variable.Z.numpy()

    nearest = ((Z[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.layers[-1].pseudo_targets, Y[nearest.argmin(axis=1)])
    # What k-means minimises: a centre is close to the mean of the rows that it owns.
    means = [X[nearest.argmin(axis=0) == k].mean(axis=0) for k in range(4)]
    np.testing.assert_allclose(Z, means, atol=0.5)


@pytest.mark.parametrize("inducing", ["subset", "kmeans"])
def test_no_more_inducing_points_than_distinct_inputs(inducing: Any) -> None:
    X2, Y2 = np.concatenate([X[:6], X[:6]]), Y
    model = build((X2, Y2), inducing=inducing, num_inducing=100)

    Z = model.inducing_variable.Z.numpy()
    np.testing.assert_allclose(np.unique(Z, axis=0), np.unique(X2, axis=0), atol=1e-12)
    assert len(Z) == 6
    assert np.isfinite(model.elbo((X2, Y2)))


@pytest.mark.parametrize("name", [each for each in KERNELS if not each.startswith("AdditiveM")])
def test_kernels_by_name_in_both_precisions(name: str) -> None:
    """Catches a kernel or a gradient of the wrong dtype, or one that loses digits.

    Gradients of features' moments are in float32, off by its rounding times the condition number
    of K + jitter I, which is at most M / jitter: here 6e-8 * 5e3 = 3e-4 on any processor. With the
    default jitter of 1e-6 a kernel of nearly equal rows may lose three digits more.
    """
    hidden = name.removeprefix("Separable").removeprefix("Additive").removeprefix("Levels")
    # Others are the second of these.
    depth = 1 if f"Additive{name}" in KERNELS else 2
    # Noise is a function of a point's digits, of which float32 must hold all.
    data = tuple(part.astype(np.float32).astype(np.float64) for part in (X, Y))
    results = []
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            model = build(data, depth, kernel=name, num_samples=2, jitter=1e-3)
            with tf.GradientTape() as tape:
                bound = model.elbo(data, seed=0)
            results.append([bound, *tape.gradient(bound, model.trainable_variables)])
            grams = model.posterior(1, seed=0).gram_matrices()
            assert all(gram.dtype == dtype for gram in grams)

    assert [kernel_name(layer.kernel) for layer in model.layers] == [name, hidden][:depth]
    for value, single in zip(*results, strict=True):
        assert (value.dtype, single.dtype) == (tf.float64, tf.float32)
        scale = 1e-3 + np.abs(value).max()
        np.testing.assert_allclose(single / scale, value / scale, atol=1e-3)


@pytest.mark.usefixtures("eager")
def test_one_word_makes_the_papers_model_and_training() -> None:
    """Catches a regression output, closed-form log ratios or the fast training in their place, and
    a first kernel that starts as one of X, not of X Xᵀ / ν₀."""
    model = build(protocol="papers")
    (layer,) = model.hidden_layers
    assert isinstance(model.output_layer, GlobalInducingGPLayer)
    assert model.num_samples == 10 and not layer.expected_log_ratio
    np.testing.assert_allclose(layer.scale_mixture.proportion, 1.0 / (1.0 + np.exp(4.0)))
    np.testing.assert_allclose(model.layers[0].kernel.lengthscales, np.sqrt([2.0, 2.0]))
    assert fit(model, (X, Y), 2, progress=False).kl_annealing_steps == 1
    inverse = build(builder="inverse_wishart", protocol="papers")
    assert not inverse.hidden_layers[0].expected_log_ratio and inverse.num_samples == 10
    cosine = build(kernel="ArcCosine", protocol="papers").layers[0].kernel
    np.testing.assert_allclose(cosine.weight_variances, [0.5, 0.5])


def test_inducing_inputs_that_are_given() -> None:
    Z = X[[3, 7, 1]] + 1e-3
    for inducing in (Z, gpflow.inducing_variables.InducingPoints(Z)):
        model = build(inducing=inducing, output="pseudo_targets")

        np.testing.assert_array_equal(model.inducing_variable.Z, Z)
        np.testing.assert_array_equal(model.output_layer.pseudo_targets, Y[[3, 7, 1]])


@pytest.mark.parametrize(
    ("builder", "output"), [("wishart", "regression"), ("gaussian", "pseudo_targets")]
)
def test_a_mean_function_is_a_shift(builder: str, output: str) -> None:
    """Catches a mean that misses the targets, the bound, or one of the ways to predict."""
    linear = gpflow.functions.Linear(np.array([[2.0], [-1.0]]), np.array([3.0]))
    trend = np.asarray(linear(X))
    model = build((X, Y), builder=builder, output=output)
    shifted = build((X, Y + trend), builder=builder, output=output, mean_function=linear)

    bounds = shifted.elbo((X, Y + trend), seed=1), model.elbo((X, Y), seed=1)
    np.testing.assert_allclose(*bounds, rtol=1e-9)
    posteriors = [m.posterior(4, seed=0) for m in (shifted, model)]
    for full_cov in (False, True):
        mean, expected = (each.predict_f(X[:3], full_cov)[0] for each in posteriors)
        np.testing.assert_allclose(mean, expected + trend[:3], rtol=1e-6)
    draws, expected = (FunctionDraws(m, 3, num_features=20, seed=1)(X) for m in (shifted, model))
    np.testing.assert_allclose(draws, expected + trend, atol=1e-6)


@pytest.mark.parametrize(
    ("likelihood", "observations", "pseudo_targets", "precision"),
    [
        ("gaussian", [0.3, 0.9], [[0.3], [0.9]], np.exp(4.0)),
        (gl.Gaussian(variance=0.1), [0.3, 0.9], [[0.3], [0.9]], 10.0),
        (gl.Gaussian(scale=0.5), [0.3, 0.9], [[0.3], [0.9]], 4.0),
        (gl.StudentT(scale=0.2), [0.3, 0.9], [[0.3], [0.9]], 25.0),
        (gl.Bernoulli(), [0.0, 1.0], [[-1.0], [1.0]], None),
        (gl.Softmax(3), [0.0, 2.0], [[1, -1, -1], [-1, -1, 1]], None),
        (gl.Poisson(), [0.0, 5.0], [[0.0], [0.0]], None),
        (gl.HeteroskedasticTFPConditional(), [0.3, 0.9], [[0, 0], [0, 0]], np.exp(-4.0)),
    ],
)
def test_pseudo_targets_are_on_the_scale_of_the_latent_functions(
    likelihood: Any, observations: list[float], pseudo_targets: Any, precision: float | None
) -> None:
    """And precise where they are observations."""
    data = np.array([[0.0], [1.0]]), np.array(observations)[:, None]
    model = build(data, likelihood=likelihood, output="pseudo_targets")

    order, layer = np.argsort(model.inducing_variable.Z.numpy()[:, 0]), model.output_layer
    np.testing.assert_array_equal(layer.pseudo_targets.numpy()[order], pseudo_targets)
    if precision is not None:
        expected = np.sqrt(precision) * np.eye(2)
        np.testing.assert_allclose(layer.precision_tril, expected, atol=1e-12)


MULTISCALE = gpflow.inducing_variables.Multiscale(X[:3], np.ones((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0, "builder": "inverse_wishart"}, "depth must be a positive integer, got 0"),
        ({"inducing": "grid"}, "inducing must be subset, kmeans or a matrix, got 'grid'"),
        ({"posterior": "Z", "depth": 1}, "posterior must be one of GW, A, AB, got 'Z'"),
        ({"kernel": "RBF"}, "kernel must be one of .*SquaredExponential, got 'RBF'"),
        ({"kernel": [gpflow.kernels.Linear()]}, "kernel must hold depth=2 kernels, got 1"),
        ({"inducing": X[:, :1]}, r"inducing must have 2 columns, as X has, got shape \[12, 1\]"),
        ({"inducing": MULTISCALE}, "inducing must be a matrix or InducingPoints, .* Multiscale"),
        ({"mean_function": 5}, "mean_function must be an instance of MeanFunction, got int"),
        ({"data": (X, np.where(Y[2] == Y, np.nan, Y)), "output": "regression"}, "are missing"),
        ({"likelihood": 5}, "likelihood must be one of gaussian, noise_free"),
        ({"width": 2**40}, "width must be smaller, got 1099511627776: two arrays of shape"),
        ({"seed": 1.5, "builder": "inverse_wishart"}, "seed must be an integer of .* got 1.5"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**arguments)


def test_a_class_of_the_users_is_not_the_one_that_it_inherits_from() -> None:
    """Catches a regression on observations that are not Gaussian."""
    tobit = type("Tobit", (gl.Gaussian,), {})()
    assert isinstance(build(depth=1, likelihood=tobit).output_layer, GlobalInducingGPLayer)
    with pytest.raises(ValueError, match=r"^output must be 'pseudo_targets' .*\(Tobit\)"):
        build(depth=1, likelihood=tobit, output="regression")


def test_a_switched_likelihood_of_equal_parts_is_one_of_them() -> None:
    """Catches an index that is taken for an output: a row would count twice."""
    parts = gl.Gaussian(0.1), gl.Gaussian(0.1)
    indexed = X, np.hstack([Y, X[:, :1] > 0.0])
    output: Any = {"depth": 1, "output": "pseudo_targets"}
    model = build(indexed, likelihood=gl.SwitchedLikelihood(parts), **output)
    plain = build(likelihood=parts[0], **output)

    assert model.num_outputs == plain.num_outputs
    np.testing.assert_allclose(model.elbo(indexed, seed=0), plain.elbo((X, Y), seed=0))
    densities = model.predict_log_density(indexed), plain.predict_log_density((X, Y))
    np.testing.assert_allclose(*densities)
    np.testing.assert_allclose(model.predict_f(X)[0], plain.predict_f(X)[0])
