"""Predictions of rows that a model had not seen."""

from __future__ import annotations

import dataclasses

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import norm

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.layers.propagation import regression_blocks
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.random import as_seed
from gpflow_dwp.selection import leave_one_out, recorded_steps
from gpflow_dwp.selection.leave_one_out import (
    leave_one_out_by_neighbours,
    leave_one_out_of_process,
    precisions_of_all,
    predict_unseen,
)
from gpflow_dwp.selection.observations import has_atoms, odd_targets
from gpflow_dwp.selection.scores import RowScores

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (15, 2))
Y = np.sin(X[:, :1]) + 0.1 * RNG.standard_normal((15, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, 15)


@pytest.mark.parametrize("warped", [False, True])
def test_of_a_process_it_is_that_of_one_without_the_row(warped: bool) -> None:
    """Catches noise of the row that is forgotten or counted twice, and weights that are not its.

    The same row's prediction, from the others alone, is held against it.
    """
    kernel = gpflow.kernels.Matern52(lengthscales=[1.0, 0.7])
    likelihood = gpflow.likelihoods.Gaussian(0.05)
    if warped:
        likelihood = WarpedGaussian(SinhArcsinh(tailweight=0.8, scale=0.5), 0.05)
    found = leave_one_out_of_process(X, Y, WEIGHTS, kernel, likelihood)
    Z = likelihood.warp.forward(tf.constant(Y)).numpy() if warped else Y
    for row in (0, 7):
        others = np.arange(15) != row
        K = kernel(X[others]).numpy() + np.diag(0.05 / WEIGHTS[others])
        k = kernel(X[others], X[[row]]).numpy()
        mean = k.T @ np.linalg.solve(K, Z[others])
        variance = kernel(X[[row]]).numpy() - k.T @ np.linalg.solve(K, k) + 0.05
        np.testing.assert_allclose(found.means[0, row], mean[0], rtol=1e-8)
        np.testing.assert_allclose(found.variances[0, row], variance[0], rtol=1e-8)
        unseen = predict_unseen(
            X[others], Y[others], WEIGHTS[others], kernel, likelihood, X[[row, row]]
        )
        np.testing.assert_allclose(unseen.means[0], np.repeat(mean, 2, 0), rtol=1e-8)
        np.testing.assert_allclose(unseen.variances[0], np.repeat(variance, 2, 0), rtol=1e-8)


def test_by_neighbours_it_is_that_of_a_process_of_these_rows() -> None:
    """Catches rows, noise or weights of others, and own ones among the neighbours."""
    kernel = gpflow.kernels.Matern52(lengthscales=[1.0, 0.7])
    likelihood = WarpedGaussian(SinhArcsinh(tailweight=0.8, scale=0.5), 0.05)
    for near in ([3, 4, 9, 0], [n for n in range(15) if n != 6]):
        rows = [*near, 6]
        found = leave_one_out_by_neighbours(
            X, Y, WEIGHTS, kernel, likelihood, np.array([rows, rows[::-1]])
        )
        expected = leave_one_out_of_process(X[rows], Y[rows], WEIGHTS[rows], kernel, likelihood)
        np.testing.assert_allclose(found.means[:, 0], expected.means[:, -1], rtol=1e-9)
        np.testing.assert_allclose(found.variances[:, 0], expected.variances[:, -1], rtol=1e-9)


@pytest.mark.parametrize(("depth", "num_inducing"), [(1, 8), (2, 8), (2, 15)])
def test_of_a_model_it_is_the_regression_without_the_row_given_each_draw(
    depth: int, num_inducing: int
) -> None:
    """Catches a posterior from which the row is not taken out, draw by draw."""
    model = build_deep_wishart_process(
        (X, Y), depth, num_inducing=num_inducing, output="regression", seed=1
    )
    found = leave_one_out(model, 3, seed=4)
    K, C, diagonal, targets = (
        part.numpy()
        for part in regression_blocks(
            model.hidden_layers, model.output_layer, model.inducing_variable.Z, 3, as_seed(4)
        )
    )
    noise = float(model.output_layer.noise_variance.numpy())
    for draw in range(len(K)):
        jitter = model.output_layer.jitter * np.mean(np.diagonal(K[draw]))
        Q = C[draw].T @ np.linalg.solve(K[draw] + jitter * np.eye(num_inducing), C[draw])
        for row in (0, 7):
            others = np.arange(15) != row
            A = Q[np.ix_(others, others)] + noise * np.eye(14)
            weights = np.linalg.solve(A, Q[others, row])
            variance = diagonal[draw, row] - Q[others, row] @ weights
            expected = variance + float(model.likelihood.variance.numpy())
            np.testing.assert_allclose(found.means[draw, row], weights @ targets[others], rtol=1e-5)
            np.testing.assert_allclose(found.variances[draw, row, 0], expected, rtol=1e-5)


def test_precisions_of_rows_that_were_not_fitted_to_are_their_posterior_means() -> None:
    """Catches an outlier that is taken for a signal, and weights of another row."""
    seen, (row, far) = np.arange(13), (13, 14)
    kernel = gpflow.kernels.Matern52(1.1, [0.8, 3.0])
    likelihood = WarpedStudentT(SinhArcsinh(), 0.02, 4.0)
    factors = RNG.uniform(0.5, 1.5, 13)
    y = Y + 5.0 * (np.arange(15) == far)[:, None]
    found = precisions_of_all((X, y, WEIGHTS), kernel, likelihood, seen, factors)
    np.testing.assert_array_equal(found[:13], factors)
    assert found[far] < 0.01 < 0.3 < found[row]
    for new in (row, far):
        rows = [*seen, new]
        K, noise = kernel(X[rows]).numpy(), 0.02 / (WEIGHTS[rows] * found[rows])
        gain = np.linalg.solve(K + np.diag(noise), K[:, -1])
        mean, variance = gain @ y[rows, 0], K[-1, -1] - gain @ K[:, -1]
        square = (y[new, 0] - mean) ** 2 + variance
        np.testing.assert_allclose(found[new], 5.0 / (4.0 + square / 0.02), rtol=1e-3)


def test_other_output_layers_are_refused() -> None:
    model = build_deep_wishart_process((X, Y), 1, num_inducing=3, output="pseudo_targets")
    with pytest.raises(ValueError, match="model must have a RegressionGPLayer"):
        leave_one_out(model)


def test_steps_are_those_of_values_that_repeat() -> None:
    """Catches a step of targets in full precision, and rounding of a computer taken for one."""
    counts = np.array([0.0, 3.0, 0.0, 1.0])
    shifted = (counts - 0.1) / 0.7
    whole = np.array([0.1, 0.2, 0.35, 0.7])
    nearly = np.array([1.0, 1.0 + 1e-12, 2.0, 2.0])
    steps = recorded_steps(np.stack([counts, shifted, whole, nearly], 1))
    np.testing.assert_allclose(steps[:3], [1.0, 1.0 / 0.7, 0.0])
    assert steps[3] == 0.0


def test_what_is_odd_of_a_target_is_said() -> None:
    ratings = RNG.integers(1, 6, 100).astype(float)
    assert "t has 5 different values in 100 rows" in str(odd_targets(ratings, "t"))
    zeros = np.where(RNG.uniform(size=100) < 0.6, 0.0, RNG.standard_normal(100))
    assert "t is 0 in" in str(odd_targets(zeros, "t"))
    assert odd_targets(RNG.standard_normal(100), "t") is None


def test_rows_are_scored_by_the_probability_of_their_cells() -> None:
    """Catches a density in place of a probability, and moments that are far out called sane."""
    kernel = gpflow.kernels.Matern52()
    found = leave_one_out_of_process(X, Y, np.ones(15), kernel, gpflow.likelihoods.Gaussian(0.05))
    scores = RowScores.of(found, Y, np.array([0.5]))
    m, s = found.means[0, :, 0], np.sqrt(found.variances[0, :, 0])
    ends = [norm.cdf((Y[:, 0] + sign * 0.25 - m) / s) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(scores.log_density, np.log((ends[0] - ends[1]) / 0.5))
    assert scores.is_sane
    far = dataclasses.replace(found, means=found.means + 3.0 * np.ptp(Y))
    assert not RowScores.of(far, Y, np.array([0.5])).is_sane


def test_atoms_are_told_from_counts() -> None:
    """Catches counts that are not warped, and a mass at zero that is."""
    zeros = np.where(RNG.uniform(size=(100, 1)) < 0.4, 0.0, np.exp(RNG.standard_normal((100, 1))))
    counts = RNG.poisson(1.0, (100, 1)).astype(float)
    assert has_atoms(zeros, recorded_steps(zeros))
    assert not has_atoms(counts, recorded_steps(counts))
