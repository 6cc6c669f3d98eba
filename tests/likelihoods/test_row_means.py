"""Rows that are means of runs, or of known noise: against all runs, and plain normal densities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpflow.kernels import Matern52, SeparateIndependent
from gpflow.likelihoods import Gaussian
from scipy.stats import multivariate_normal

from gpflow_dwp import build_deep_wishart_process, emulation
from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.gaussian_process import Evidence
from gpflow_dwp.gaussian_process.covariances import covariance
from gpflow_dwp.kernels.values import Part
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.models.named_kernels import positive_by_exp
from gpflow_dwp.selection import policy

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (20, 2))
STD = RNG.uniform(0.02, 0.6, 20)
RUNS = np.repeat(X, RNG.integers(1, 6, 20), axis=0)
NEW = RNG.uniform(-2.0, 2.0, (6, 2))


def function(X: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * X[:, 0]) + X[:, 1]


OUTPUTS = function(RUNS) + 0.3 * RNG.standard_normal(len(RUNS))
OTHERS = np.cos(6.0 * RUNS[:, 1]) + 0.05 * np.random.default_rng(1).standard_normal(len(RUNS))
BOTH = np.stack([OUTPUTS, OTHERS], axis=1)


def evidence(X: np.ndarray, Y: np.ndarray, weights: np.ndarray, noise: Gaussian) -> Evidence:
    kernel = (Part(Matern52, 1.3, np.full(2, 2.0)),)
    return Evidence(X, Y, weights, np.zeros(Y.shape[1]), kernel, positive_by_exp(noise))


@pytest.mark.parametrize("Y", [BOTH[:, :1], BOTH])
def test_evidence_of_means_is_that_of_all_runs(Y: np.ndarray) -> None:
    """Catches within-variance that is lost, or counted where rows are some of all."""
    found = RowMeansGaussian.of_replicates(RUNS, Y)
    assert found is not None
    noise, (inputs, means, counts) = found
    joined = evidence(inputs, means, counts, noise.starting_at(0.1))
    full = evidence(RUNS, Y, np.ones(len(RUNS)), Gaussian(0.1))
    vector = np.array([0.1, 0.2, 0.3, -1.5])
    (value, slopes), (expected, of_all) = joined(vector), full(vector)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(slopes, of_all, rtol=1e-8, atol=1e-8)
    assert RowMeansGaussian.of_replicates(X, X[:, :1]) is None


def test_evidence_of_known_noise_is_the_normal_density() -> None:
    """Catches noise that is learned after all, and densities up to a constant."""
    noise, weights = RowMeansGaussian.of_known(STD**2)
    known = evidence(X, function(X)[:, None], weights, noise)
    low, high = known.limits()[-1]
    assert low == high and not noise.trainable_parameters
    K = covariance(known.kernel, X) + np.diag(STD**2)
    expected = multivariate_normal(np.zeros(20), K).logpdf(function(X))
    np.testing.assert_allclose(known(known.start())[0], expected, rtol=1e-10)


@pytest.mark.parametrize("depth", [1, 2])
def test_bounds_and_predictions_are_those_of_all_runs(depth: int) -> None:
    """Catches what is within rows counted as often as draws, or as that of another output."""
    found = RowMeansGaussian.of_replicates(RUNS, BOTH)
    assert found is not None
    noise, data = found
    noise.variance.assign([0.2, 0.01])
    kernels = [Matern52(1.0, 0.7), Matern52(2.0, 0.3)]
    kernel = SeparateIndependent(kernels) if depth == 1 else "Matern52"
    given = {"num_inducing": 5, "inducing": X[:5], "kernel": kernel, "seed": 0}
    joined = build_deep_wishart_process(data, depth, likelihood=noise, **given)
    full = build_deep_wishart_process(
        (RUNS, BOTH), depth, likelihood=Gaussian([0.2, 0.01]), **given
    )
    bounds = [float(m.elbo(d, seed=0)) for m, d in ((joined, data), (full, (RUNS, BOTH)))]
    np.testing.assert_allclose(*bounds, rtol=1e-8)
    moments = [m.posterior(4, seed=0).predict_y(NEW) for m in (joined, full)]
    np.testing.assert_allclose(*moments, rtol=1e-8)


@pytest.mark.parametrize("Y", [OUTPUTS, pytest.param(BOTH, marks=pytest.mark.slow)])
def test_replicates_are_predicted_as_from_all_runs(
    Y: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches units of the means alone, and other kernels or noise than those of all runs."""
    given = {"likelihood": "gaussian", "kernel": "Matern52", "effort": "quick", "random_state": 0}
    monkeypatch.setattr(policy, "LEVEL", 0.0)  # which of joined runs is another
    joined = DeepWishartRegressor(**given).fit(RUNS, Y)
    monkeypatch.setattr(DeepWishartRegressor, "_joins_replicates", lambda *_: False)
    full = DeepWishartRegressor(**given).fit(RUNS, Y)
    monkeypatch.undo()
    assert isinstance(joined.model_.output_layer.kernel, SeparateIndependent) is (Y is BOTH)
    tried = ([each.elbo for each in m.candidates_] for m in (joined, full))
    np.testing.assert_allclose(*tried, rtol=1e-6)
    for include_noise in (True, False):
        found, expected = (m.predict(NEW, True, include_noise) for m in (joined, full))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert joined.model_.num_data == 20
    if Y is BOTH:
        left_out = [emulation.leave_one_out(m).std for m in (joined, full)]
        assert left_out[0].shape == (20, 2) and left_out[1].shape == BOTH.shape
        return
    joined.tell(RUNS[:2], OUTPUTS[:2] + 0.1)
    assert (joined.model_.num_data, len(joined._rows[0])) == (20, len(RUNS) + 2)


def test_known_noise_is_that_of_each_run(tmp_path: Path) -> None:
    """Catches noise in other units, of other rows, or lost where runs are told, kept or left out.

    Against the Gaussian process with the kernel that was fitted, in NumPy.
    """
    y = function(X) + STD * RNG.standard_normal(20)
    given = {"kernel": "SquaredExponential", "effort": "quick", "random_state": 0}
    fitted = DeepWishartRegressor(**given).fit(X[:18], y[:18], noise_std=STD[:18])
    fitted.tell(X[18:], y[18:], noise_std=STD[18:])
    fitted.model_.output_layer.set_kernel_draws(None)
    fitted.save(tmp_path / "fitted")
    fitted = DeepWishartRegressor.load(tmp_path / "fitted")
    units, kernel = fitted.output_standardiser_, fitted.model_.output_layer.kernel
    rows, new = (fitted.input_standardiser_.transform(part) for part in (X, NEW))
    K = units.scale**2 * kernel(rows).numpy() + np.diag(STD**2)
    K += 1e-8 * units.scale**2 * np.eye(20)
    cross = units.scale**2 * kernel(rows, new).numpy()
    mean = units.mean + cross.T @ np.linalg.solve(K, y - units.mean)
    np.testing.assert_allclose(fitted.predict(NEW, include_noise=False), mean, rtol=1e-5)
    inverse = np.linalg.inv(K)
    left_out = emulation.leave_one_out(fitted)
    spread = 1.0 / np.diagonal(inverse)
    np.testing.assert_allclose(left_out.std, np.sqrt(spread), rtol=1e-5)
    np.testing.assert_allclose(left_out.mean, y - spread * (inverse @ (y - units.mean)), rtol=1e-4)
    for told, message in (({}, "if, and only if"), ({"noise_std": [1.0, np.nan]}, "2 finite")):
        with pytest.raises(ValueError, match=message):
            fitted.tell(X[:2], y[:2], **told)
    for arguments, message in (
        ({"noise_std": STD[:3]}, "20 finite numbers"),
        ({"noise_std": STD, "sample_weight": STD}, "must not be given with sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            DeepWishartRegressor(**given).fit(X, y, **arguments)
    with pytest.raises(ValueError, match="likelihood='warped'"):
        DeepWishartRegressor(likelihood="warped").fit(X, y, noise_std=STD)
    with pytest.raises(ValueError, match="of one target"):
        DeepWishartRegressor(**given).fit(X, np.stack([y, y**2], 1), noise_std=STD)
