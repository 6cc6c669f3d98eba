"""The benchmark of sixty functions: designs, methods, scores and ranks."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import benchmark30
import numpy as np
import pandas as pd
import pytest
from benchmark30 import beside_print, load, ours, ranks, report, scores
from reference import normal_crps
from robust_gasp import _lost_by, robust_gasp
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist

from gpflow_dwp.estimator import DeepWishartRegressor

FEW = {"depth": 1, "kernel": "Matern52", "likelihood": "gaussian", "num_steps": 3}


def test_runs_are_hypercubes_with_noise_of_the_ratio() -> None:
    """Catches noise in the test values, and a ratio of deviations."""
    X, y, T, t = load("borehole", 400, 0.1, 10)
    _, clean, _, same = load("borehole", 400, 0.0, 10)
    assert sorted(np.floor(400 * X[:, 3])) == list(range(400)) and T.shape == (1000, 8)
    assert np.var(y - clean) == pytest.approx(0.1 * np.var(clean), rel=0.2)
    np.testing.assert_array_equal(t, same)
    assert not np.array_equal(load("borehole", 400, 0.0, 11)[0], X)


def test_scores_are_those_of_the_normal() -> None:
    """CRPS of N(1, 1) at 0, and of N(1, 4) with noise; units of print."""
    t, one = np.zeros(5), np.ones((1, 5))
    found = scores((one, one, 3.0, {"depth": 1}), t, 2.0, 0.25)
    assert found["crps"] == found["median_crps"] == pytest.approx(normal_crps(0, 1, 1) / 2.0)
    assert found["observed_crps"] == pytest.approx(normal_crps(0, 1, 2) / 2.0)
    assert found["fvu"] == pytest.approx(1.0 / (4.0 * 1.25))
    assert (found["coverage"], found["depth"]) == (1.0, 1)


def test_our_components_have_the_moments_that_we_predict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches standardised units, and noise that is in both predictives or in none."""
    few = partial(DeepWishartRegressor, **FEW)
    monkeypatch.setattr(benchmark30, "DeepWishartRegressor", few)
    X, y, T, _ = load("simple_poly", 30, 0.1, 10)
    means, variances, extra, told = ours(X, y, T[:7], 10, 0.1)
    model = few(random_state=10).fit(X, y)
    mean, deviation = model.predict(T[:7], return_std=True)
    np.testing.assert_allclose(means.mean(0), mean, rtol=1e-6)
    variance = np.mean(variances, axis=0) + np.var(means, axis=0) + extra
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-5)
    assert means.shape == (1, 7) and (extra > 0.0).all() and told["depth"] == 1


def naive(parameters: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The log posterior from its definition (Gu, Wang and Berger, 2018, section 3)."""
    N, D = X.shape
    *inverse, nugget = np.exp(parameters)
    K = np.eye(N) * nugget
    R = np.ones((N, N))
    for d in range(D):
        s = np.sqrt(5.0) * inverse[d] * cdist(X[:, [d]], X[:, [d]])
        R *= (1 + s + s**2 / 3) * np.exp(-s)
    K = np.linalg.inv(K + R)
    H = np.ones((N, 1))
    Q = K - K @ H @ np.linalg.inv(H.T @ K @ H) @ H.T @ K
    total = np.ptp(X, axis=0) / N ** (1 / D) @ inverse + nugget
    log_prior = 0.2 * np.log(total) - N ** (-1 / D) * (0.2 + D) * total
    log_likelihood = np.linalg.slogdet(K)[1] - np.linalg.slogdet(H.T @ K @ H)[1]
    return 0.5 * (log_likelihood - (N - 1) * np.log(y @ Q @ y)) + log_prior


def test_robust_gasp_has_its_posterior_and_gradient() -> None:
    X, y, *_ = load("friedman", 25, 0.1, 10)
    parameters = np.random.default_rng(0).normal(size=6) - 1.0
    value, gradient = _lost_by(parameters, X, y)
    assert -value == pytest.approx(naive(parameters, X, y), rel=1e-8)
    numeric = approx_fprime(parameters, lambda p: _lost_by(p, X, y)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4)


def test_robust_gasp_finds_function_and_noise() -> None:
    X, y, T, t = load("friedman", 120, 0.1, 10)
    mean, variance, nugget = robust_gasp(X, y, T, 0)
    assert np.mean((mean - t) ** 2) < 0.06 * t.var()
    assert nugget == pytest.approx(0.1 * t.var(), rel=0.5)
    assert 0.85 < np.mean(np.abs(mean - t) < 2 * np.sqrt(variance)) < 1.0


def test_level_values_share_the_best_rank() -> None:
    """Catches our other methods among the ranked, and order among what print has as 0.001."""
    table = pd.DataFrame(
        {"ours": [1e-6, 0.2], "robust-gasp": [1e-9, 0.1], "gp": [1e-3, 0.1], "bart": [0.5, np.nan]}
    )
    assert ranks(table).fillna(0).to_numpy().tolist() == [[1.0, 1.0, 3.0], [2.0, 1.0, 0.0]]


@pytest.mark.usefixtures("undrawn")
def test_report_is_beside_print(tmp_path: Path) -> None:
    """RobustGaSP's mean rank is first, and 4.0 where level ones share the mean, as in the paper."""
    scored = dict.fromkeys(benchmark30._SHOWN, 0.5)
    lines = [
        {"function": name, "method": method, "num_runs": 1000, "noise": 0.0, "design": 0, **scored}
        for name in benchmark30.SIXTY
        for method in ("ours", "robust-gasp")
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = beside_print(lines, 1000, 0.0)
    assert table.shape == (60, 29) and ranks(table).mean().idxmin() == "rgasp"
    assert ranks(table, "average").mean()["rgasp"] == pytest.approx(4.0, abs=0.1)
    assert table.loc["ignition", "deepgp"] == pytest.approx(0.0365)
    report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "Mean ranks over 60 functions: rgasp" in text and "| ignition" in text
    assert (tmp_path / "1000-0.png").exists() and (tmp_path / "1000-0-seconds.png").exists()
