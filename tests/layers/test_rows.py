"""Regressions whose predictions add what inducing points leave, beside loops in NumPy."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from model_reference import matern_regression, numpy_matern52, toy_data

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.layers.propagation import expected_features
from gpflow_dwp.models import DeepWishartProcess, FunctionDraws

X, Y = toy_data(30, num_outputs=2)
NEW = np.random.default_rng(5).normal(size=(7, 2))
NOISE = 0.05


def make(depth: int, num_inducing: int, num_neighbours: int, *weights: np.ndarray) -> Any:
    given: Any = {"num_inducing": num_inducing, "output": "regression", "seed": 1}
    model = matern_regression((X, Y, *weights), depth, NOISE, num_neighbours, **given)
    if num_inducing == len(X):
        model.inducing_variable.Z.assign(X)
    return model


class Reference:
    """A draw of a model: features of inducing points and rows, and what they tell."""

    def __init__(self, layer: Any, points: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> None:
        self.layer, self.points, self.rows, self.noise = layer, points, rows, noise
        K = self.k(points, points)
        self.K = K + layer.jitter * np.mean(np.diag(K)) * np.eye(len(K))

    def k(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return numpy_matern52(self.layer.kernel, a, b)

    def left(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The covariance that inducing points leave."""
        of_a, of_b = self.k(self.points, a), self.k(self.points, b)
        return self.k(a, b) - of_a.T @ np.linalg.solve(self.K, of_b)

    def functions(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance at the inducing points, given rows that are independent else."""
        C = self.k(self.points, self.rows[rows])
        D = np.diag(self.left(self.rows[rows], self.rows[rows])) + self.noise[rows]
        S = self.K @ np.linalg.solve(self.K + (C / D) @ C.T, self.K)
        return S @ np.linalg.solve(self.K, (C / D) @ Y[rows]), S

    def predict(self, point: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, float]:
        apart = np.linalg.norm((self.rows[among] - point) / self.layer.kernel.lengthscales, axis=1)
        near = among[np.argsort(apart)[: self.layer.num_neighbours]]
        R = self.left(self.rows[near], self.rows[near]) + np.diag(self.noise[near])
        w = np.linalg.solve(R, self.left(self.rows[near], point[None]))[:, 0]
        u, S = self.functions(among)
        of_near = np.linalg.solve(self.K, self.k(self.points, self.rows[near]))
        of_point = np.linalg.solve(self.K, self.k(self.points, point[None]))[:, 0]
        g = of_point - of_near @ w
        left = self.left(point[None], point[None]).item() - w @ R @ w
        return g @ u + w @ Y[near], left + g @ S @ g


def references(model: Any, noise: np.ndarray) -> tuple[Any, list[Reference]]:
    posterior = model.posterior(3, seed=4)
    [draw] = posterior.path.output.parts
    pairs = zip(draw.inducing.points.numpy(), draw.features.numpy(), strict=True)
    return posterior, [Reference(posterior.output, *pair, noise) for pair in pairs]


@pytest.mark.parametrize(("depth", "num_inducing"), [(1, 6), (2, 6), (1, 30)])
def test_predictions_add_what_nearest_rows_tell(
    depth: int, num_inducing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a residual that inducing points have told already, one that is told twice, a block of
    rows that is left out, and rows that count once, whatever they weigh.

    With all rows as inducing points the process is exact.
    """
    monkeypatch.setattr("gpflow_dwp.layers.rows._BLOCK", 8)
    model, noise = make(depth, num_inducing, 5), np.full(30, NOISE)
    if (depth, num_inducing) == (1, 6):
        weights = np.random.default_rng(0).uniform(0.5, 3.0, 30)
        model, noise = make(depth, num_inducing, 5, weights), NOISE / weights
    posterior, draws = references(model, noise)
    layer, path = posterior.output, posterior.path
    means, variances = (part.numpy() for part in posterior.predict_f_components(NEW))
    features = NEW[None]
    if depth == 2:
        features = expected_features(posterior.hidden, path.points, path.hidden, tf.constant(NEW))
        features = features.numpy()
    for s, each in enumerate(draws):
        for n, point in enumerate(features[s]):
            mean, variance = each.predict(point, np.arange(30))
            np.testing.assert_allclose(means[s, n], mean, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(variances[s, n, 0], variance, rtol=1e-5, atol=1e-7)
    left_out = [part.numpy() for part in layer.leave_out(path.output, np.array([3, 17]))]
    for s, each in enumerate(draws):
        for n, row in enumerate((3, 17)):
            others = np.delete(np.arange(30), row)
            mean, variance = each.predict(each.rows[row], others)
            np.testing.assert_allclose(left_out[0][s, n], mean, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(left_out[1][s, n], variance, rtol=1e-5, atol=1e-7)
    if num_inducing == 30:
        A = layer.kernel(X).numpy() + NOISE * np.eye(30)
        k = layer.kernel(X, NEW).numpy()
        np.testing.assert_allclose(means[0], k.T @ np.linalg.solve(A, Y), atol=1e-4)


def test_joint_predictions_agree_with_single_ones() -> None:
    """Catches functions at inducing points that points do not share.

    The first of some points knows of rows alone; where all are far apart so do the others.
    """
    model = make(2, 6, 5)
    posterior = model.posterior(3, seed=4)
    means, covariances = posterior._propagate(tf.constant(NEW), full_cov=True)
    single, variances = posterior.predict_f_components(NEW)
    np.testing.assert_allclose(means[:, 0], single[:, 0], rtol=1e-6)
    np.testing.assert_allclose(covariances[:, 0, 0], variances[:, 0, 0], rtol=1e-5)
    draws = np.linalg.eigvalsh(covariances.numpy())
    assert (draws > -1e-9).all()


def test_graphs_and_random_functions_predict_the_same() -> None:
    """Catches another search in compiled functions, and draws of functions of other moments."""
    model = make(1, 6, 5)
    compiled = tf.function(lambda at: model.predict_f(at, seed=0))(NEW)
    np.testing.assert_allclose(compiled, model.predict_f(NEW, seed=0), rtol=1e-6)
    draws = FunctionDraws(model, 400, seed=3)(tf.constant(NEW)).numpy()
    mean, variance = (part.numpy() for part in model.posterior(400, seed=0).predict_f(NEW))
    errors = np.abs(draws.mean(0) - mean) / np.sqrt(variance / 400)
    assert errors.max() < 5.0


@pytest.mark.parametrize("depth", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_functions_with_kernels_of_their_own(depth: int) -> None:
    """Catches neighbours that an output was not observed at, and noise of another output."""
    kernels = [gpflow.kernels.Matern52(lengthscales=scale) for scale in (0.7, 1.5)]
    noises, missing = np.array([0.05, 0.2]), np.random.default_rng(7).random(Y.shape) < 0.3
    observed = np.where(missing, np.nan, Y)
    several = gpflow.kernels.SeparateIndependent(kernels)
    model = build_deep_wishart_process(
        (X, observed),
        depth,
        num_inducing=6,
        output="regression",
        kernel=["Matern52"] * (depth - 1) + [several],
        likelihood=gpflow.likelihoods.Gaussian(noises),
        seed=1,
    )
    layer, left = model.output_layer, np.array([3, 17, 20])
    layer.num_neighbours = 5
    layer.noise_variance.assign(noises)
    posterior = model.posterior(3, seed=4)
    means, variances = (part.numpy() for part in posterior.predict_f_components(NEW))
    joint = [part.numpy() for part in posterior._propagate(tf.constant(NEW), full_cov=True)]
    apart = [part.numpy() for part in layer.leave_out(posterior.path.output, left)]
    draws = FunctionDraws(model, 400, seed=3)(tf.constant(NEW)).numpy()
    for q, kernel in enumerate(kernels):
        seen = ~missing[:, q]
        output = RegressionGPLayer(
            kernel, 6, X[seen], Y[seen, q : q + 1], noise_variance=noises[q], num_neighbours=5
        )
        one = DeepWishartProcess(
            [*model.hidden_layers, output],
            gpflow.likelihoods.Gaussian(noises[q]),
            model.inducing_variable.Z,
            num_data=len(X),
        )
        alone = one.posterior(3, seed=4)
        expected = [part.numpy() for part in alone.predict_f_components(NEW)]
        np.testing.assert_allclose(means[..., q], expected[0][..., 0], rtol=1e-8)
        np.testing.assert_allclose(variances[..., q], expected[1][..., 0], rtol=1e-6)
        expected = [part.numpy() for part in alone._propagate(tf.constant(NEW), full_cov=True)]
        np.testing.assert_allclose(joint[0][..., q], expected[0][..., 0], rtol=1e-8)
        np.testing.assert_allclose(joint[1][:, q], expected[1], atol=1e-8)
        for place, row in enumerate(left):
            if seen[row]:
                index = np.array([np.sum(seen[:row])])
                of_row = [p.numpy() for p in output.leave_out(alone.path.output, index)]
                np.testing.assert_allclose(apart[0][:, place, q], of_row[0][:, 0, 0], rtol=1e-8)
                np.testing.assert_allclose(apart[1][:, q, place], of_row[1][:, 0], rtol=1e-6)
        mean, variance = (part.numpy() for part in one.posterior(400, seed=0).predict_f(NEW))
        errors = np.abs(draws[..., q].mean(0) - mean[:, 0]) / np.sqrt(variance[:, 0] / 400)
        assert errors.max() < 5.0
    if depth == 2:
        return
    compiled = tf.function(lambda at: model.predict_f(at, seed=0))(NEW)
    np.testing.assert_allclose(compiled, model.predict_f(NEW, seed=0), rtol=1e-6)
