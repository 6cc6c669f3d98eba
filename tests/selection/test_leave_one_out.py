"""Predictions of rows that a model had not seen."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import norm

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.layers.propagation import regression_blocks
from gpflow_dwp.random import as_seed
from gpflow_dwp.selection import leave_one_out, recorded_steps
from gpflow_dwp.selection.leave_one_out import (
    distribution_of,
    leave_one_out_of_heteroskedastic,
    nats_of_function,
)
from gpflow_dwp.selection.observations import has_atoms, odd_targets
from gpflow_dwp.selection.scores import RowScores

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (15, 2))
Y = np.sin(X[:, :1]) + 0.1 * RNG.standard_normal((15, 1))


@pytest.mark.parametrize(("depth", "num_inducing"), [(1, 8), (2, 8), (2, 15)])
def test_it_is_the_regression_without_the_row_by_draw(depth: int, num_inducing: int) -> None:
    """Catches a posterior from which the row is not taken out, draw by draw."""
    given = {"num_inducing": num_inducing, "output": "regression", "seed": 1}
    model = build_deep_wishart_process((X, Y), depth, **given)
    found = leave_one_out(model, 3, seed=4)
    parts = model.hidden_layers, model.output_layer, model.inducing_variable.Z
    blocks = regression_blocks(*parts, 3, as_seed(4))
    K, C, diagonal, targets = (block.numpy() for block in blocks)
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


def test_what_a_known_function_would_gain_is_told_by_rows_left_out() -> None:
    """Catches variances that have the noise in them, and rows that do not count."""
    counts = np.array([0.0, 2.0] + [1.0] * 13)
    model = build_deep_wishart_process((X, Y), 1, output="regression", seed=1, jitter=1e-12)
    noise, nats = float(model.likelihood.variance.numpy()), []
    for row in range(1, 15):
        others = np.setdiff1d(np.arange(1, 15), row)
        A = model.layers[0].kernel(X[others]).numpy() + noise * np.diag(1.0 / counts[others])
        k = model.layers[0].kernel(X[others], X[[row]]).numpy()
        variance = model.layers[0].kernel.variance.numpy() - (k.T @ np.linalg.solve(A, k)).item()
        nats.append(0.5 * np.log1p(variance * counts[row] / noise))
    found = nats_of_function(model.layers[0], model.likelihood, counts)
    np.testing.assert_allclose(found, np.mean(nats), rtol=1e-6)


def test_other_output_layers_are_refused() -> None:
    model = build_deep_wishart_process((X, Y), 1, num_inducing=3, output="pseudo_targets")
    with pytest.raises(ValueError, match="model must have a RegressionGPLayer"):
        leave_one_out(model)


def test_draws_under_noise_with_tails_have_smoothed_scores() -> None:
    """Catches scores that draws of several normals each cannot have: no deep model was kept."""
    given = {"num_inducing": 8, "output": "regression", "likelihood": "student_t"}
    draws = leave_one_out(build_deep_wishart_process((X, Y), 2, **given), 4)
    scores = RowScores.smoothed(draws, Y, np.zeros(1))
    assert np.isfinite(scores.mean).all() and scores.k_hat.shape == (15,)


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
    means, variances = (RNG.uniform(0.1, 1.0, (1, 15, 1)) for _ in range(2))
    found = PredictiveDistribution(means, variances)
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


def test_function_and_noise_lose_the_sites_of_a_row() -> None:
    """Catches sites that are not those of the expected log density, by automatic derivatives."""
    targets = np.hstack([Y, 0.5 - Y])
    given = {"likelihood": "heteroskedastic", "num_inducing": 8, "seed": 1}
    model = build_deep_wishart_process((X, targets), 1, **given)
    model.likelihood.amplitude.assign([0.4, 0.7])
    model.likelihood.scale.assign([2.0, 3.0])
    mean, variance = model.posterior(1, seed=0).predict_f_components(X)
    with tf.GradientTape() as tape:
        tape.watch((mean, variance))
        expected = model.likelihood.variational_expectations(X, mean, variance, targets)
    slope, curvature = tape.gradient(expected, (mean, variance))
    precision = 1.0 / variance + 2.0 * curvature  # of the posterior, less that of the site
    assert np.min(precision * variance) > 0.02
    shifted = mean / variance - (slope - 2.0 * curvature * mean)

    found = leave_one_out_of_heteroskedastic(model, X, targets)
    left_out = distribution_of(model.likelihood, X, (shifted / precision).numpy(), 1.0 / precision)
    np.testing.assert_allclose(found.mean(), left_out.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.variance(), left_out.variance(), rtol=1e-9)
