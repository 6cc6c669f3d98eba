"""The output layer that conditions on nearest rows, beside loops over them in NumPy."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import assert_gradients_are_finite_differences as assert_gradients
from model_reference import matern_regression, numpy_matern52, toy_data
from scipy.stats import multivariate_normal, norm

from gpflow_dwp.layers import NearestNeighbourGPLayer
from gpflow_dwp.layers.propagation import expected_features, sample_inducing_path
from gpflow_dwp.models import mixture_posterior
from gpflow_dwp.random import as_seed, split_seed

X, Y = toy_data(30, num_outputs=2)
NEW = np.random.default_rng(5).normal(size=(7, 2))
NOISE = 0.05


def make(depth: int, num_neighbours: int) -> Any:
    given: Any = {"num_inducing": 6, "num_samples": 3, "output": "nearest_neighbours"}
    return matern_regression((X, Y), depth, NOISE, num_neighbours, **given)


def given(
    layer: NearestNeighbourGPLayer, features: np.ndarray, point: np.ndarray, among: np.ndarray
) -> tuple[np.ndarray, float]:
    """Mean and variance of the functions at a point, from the nearest of some rows."""
    scales = layer.kernel.lengthscales.numpy()
    apart = np.linalg.norm((features[among] - point) / scales, axis=1)
    near = among[np.argsort(apart)[: layer.num_neighbours]]
    A = numpy_matern52(layer.kernel, features[near], features[near]) + NOISE * np.eye(len(near))
    k = numpy_matern52(layer.kernel, features[near], point[None])
    b = np.linalg.solve(A, k)
    return b[:, 0] @ Y[near], (layer.kernel.variance.numpy() - k.T @ b).item()


def drawn(model: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A posterior of three draws, and features of rows and new points under each."""
    posterior = model.posterior(3, seed=4)
    path = posterior.path
    of_new = expected_features(posterior.hidden, path.points, path.hidden, tf.constant(NEW))
    return posterior, path.output.parts[0].features.numpy(), of_new.numpy()


@pytest.mark.parametrize(("depth", "num_neighbours"), [(1, 30), (2, 5)])
def test_predictions_are_those_of_the_nearest_rows(depth: int, num_neighbours: int) -> None:
    """Catches rows that are not the nearest, and moments that are not a Gaussian's."""
    posterior, features, of_new = drawn(make(depth, num_neighbours))
    means, variances = (part.numpy() for part in posterior.predict_f_components(NEW))
    for draw in range(len(features)):
        for n, point in enumerate(of_new[draw]):
            mean, variance = given(posterior.output, features[draw], point, np.arange(30))
            np.testing.assert_allclose(means[draw, n], mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(variances[draw, n], variance, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("num_neighbours", [5, 40])
def test_joint_predictions_are_those_of_points_that_follow_each_other(num_neighbours: int) -> None:
    """Catches points that do not know of those before them; with all as neighbours it is exact."""
    model = make(1, num_neighbours)
    posterior, (rows,), (new,) = drawn(model)
    mean, covariance = (part.numpy() for part in posterior.predict_f(NEW, full_cov=True))
    layer, everything = model.output_layer, np.concatenate([rows, new])
    scales = layer.kernel.lengthscales.numpy()
    weights, left = np.zeros((7, 37)), np.zeros(7)
    for n in range(7):
        apart = np.linalg.norm((everything[: 30 + n] - new[n]) / scales, axis=1)
        near = np.argsort(apart)[:num_neighbours]
        noise = np.where(near < 30, NOISE, 1e-10 * layer.kernel.variance.numpy())
        k = layer.kernel(everything[near], new[[n]]).numpy()[:, 0]
        weights[n, near] = np.linalg.solve(
            layer.kernel(everything[near]).numpy() + np.diag(noise), k
        )
        left[n] = layer.kernel.variance.numpy() - k @ weights[n, near]
    inverse = np.linalg.inv(np.eye(7) - weights[:, 30:])
    np.testing.assert_allclose(mean, inverse @ weights[:, :30] @ Y, rtol=1e-6, atol=1e-8)
    expected = inverse @ np.diag(left) @ inverse.T
    np.testing.assert_allclose(covariance[0], expected, rtol=1e-6, atol=1e-8)
    if num_neighbours == 40:
        A = layer.kernel(X).numpy() + NOISE * np.eye(30)
        k = layer.kernel(X, NEW).numpy()
        exact = layer.kernel(NEW).numpy() - k.T @ np.linalg.solve(A, k)
        np.testing.assert_allclose(covariance[1], exact, atol=1e-7)


def test_bound_is_the_density_of_each_row_given_those_before_it() -> None:
    """Catches a neighbour that comes later, and the row as its own neighbour."""
    model = make(2, 5)
    layer = model.output_layer
    terms = model.elbo_terms((X, Y), seed=3)
    seed = split_seed(as_seed(3), 2)[0]  # that of the bound's draws
    Z = model.inducing_variable.Z
    path = sample_inducing_path(model.hidden_layers, layer, Z, 3, seed)
    ranks, total = layer.ranks(X, Y).numpy(), 0.0
    features = path.output.parts[0].features.numpy()
    for each in features:
        for n in range(30):
            mean, variance = given(layer, each, each[n], np.flatnonzero(ranks < ranks[n]))
            total += norm.logpdf(Y[n], mean, np.sqrt(variance + NOISE)).sum() / len(features)
    np.testing.assert_allclose(terms.data, total, rtol=1e-9)


def test_bound_given_all_that_precede_is_the_evidence() -> None:
    """Catches an order in which rows count twice, as halves of the rows show too."""
    model = make(1, 29)
    K = model.output_layer.kernel(X).numpy() + NOISE * np.eye(30)
    expected = sum(multivariate_normal(np.zeros(30), K).logpdf(y) for y in Y.T)
    np.testing.assert_allclose(model.elbo((X, Y)), expected, rtol=1e-8)
    halves = [float(model.elbo((X[part], Y[part]))) for part in (slice(15), slice(15, 30))]
    np.testing.assert_allclose(np.mean(halves), expected, rtol=1e-8)


def test_gradient_of_the_bound_is_that_of_finite_differences() -> None:
    model = make(2, 5)
    parameters = model.output_layer.kernel.lengthscales, model.layers[0].kernel.variance
    variables = [each.unconstrained_variable for each in parameters]
    assert_gradients(lambda: model.elbo((X, Y), seed=1), variables)


def test_blocks_and_graphs_find_the_same_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches another search in compiled functions, and blocks of rows that are not joined."""
    model = make(1, 5)
    expected = model.predict_y(NEW)
    monkeypatch.setattr(mixture_posterior, "_MAX_BLOCK_SIZE", 10_000)
    monkeypatch.setattr("gpflow_dwp.neighbours._BLOCK", 7)
    in_blocks = model.predict_y(NEW)
    in_parts = tf.function(model.predict_y, autograph=False)(tf.constant(NEW))
    for found in (in_blocks, in_parts):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_bound_by_monte_carlo_is_a_function_of_its_seed() -> None:
    model = make(1, 4)
    model.likelihood = gpflow.likelihoods.GaussianMC(NOISE)
    bounds = [float(model.elbo((X, Y), seed=seed)) for seed in (1, 1, 2)]
    assert bounds[0] == bounds[1] != bounds[2]
