"""Scores against second implementations, and in the right units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import r2_score

from gpflow_dwp.evaluation import (
    accuracy,
    expected_calibration_error,
    explained_variance,
    interval_coverage,
    mean_log_density,
    rmse,
)
from gpflow_dwp.evaluation.metrics import mixture_crps
from gpflow_dwp.evaluation.mixture import mixture_cdf

RNG = np.random.default_rng(2)
Y, MEANS, VARIANCES = RNG.normal(size=6), RNG.normal(size=[4, 6]), RNG.gamma(2.0, 0.3, size=[4, 6])


def test_rmse() -> None:
    assert rmse([1.0, 2.0, 5.0], [1.0, 4.0, 4.0]) == pytest.approx(np.sqrt(5.0 / 3.0))
    assert rmse([[1.0], [3.0]], [[2.0], [4.0]]) == 1.0


def test_interval_coverage_includes_the_ends() -> None:
    assert (
        interval_coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 2.5, 0.0], [1.0, 1.0, 3.0, 2.9]) == 0.5
    )


def test_accuracy() -> None:
    assert accuracy([0, 1, 2, 1], [0, 1, 1, 1]) == 0.75


def test_mean_log_density_is_that_of_the_mixture() -> None:
    each = stats.norm.pdf(Y, MEANS, np.sqrt(VARIANCES))
    assert mean_log_density(Y, MEANS, VARIANCES) == pytest.approx(np.log(each.mean(0)).mean())
    assert mean_log_density(Y[:, None], MEANS, VARIANCES) == mean_log_density(Y, MEANS, VARIANCES)


def test_crps_is_the_integrated_squared_error_of_the_distribution() -> None:
    total = 0.0
    for n in range(6):
        parts = (MEANS[:, n : n + 1], VARIANCES[:, n : n + 1])
        below, _ = integrate.quad(lambda y, p: mixture_cdf(y, *p)[0] ** 2, -20, Y[n], args=(parts,))
        above, _ = integrate.quad(
            lambda y, p: (1.0 - mixture_cdf(y, *p)[0]) ** 2, Y[n], 20, args=(parts,)
        )
        total += below + above
    assert mixture_crps(Y, MEANS, VARIANCES) == pytest.approx(total / 6.0, rel=1e-7)


def test_crps_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mixture_crps(Y, MEANS, VARIANCES)
    monkeypatch.setattr("gpflow_dwp.evaluation.mixture._MAX_PAIRS", 4 * 16)
    assert mixture_crps(Y, MEANS, VARIANCES) == pytest.approx(whole, rel=1e-14)


@pytest.mark.parametrize("metric", [rmse, accuracy, lambda a, b: interval_coverage(a, b, b)])
def test_refuses_shapes_that_would_broadcast(metric: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"shapes must be the same .* y_true \[3, 1\], .* \[3\]"):
        metric(np.ones([3, 1]), np.ones(3))
    with pytest.raises(ValueError, match="not empty"):
        metric([], [])


@pytest.mark.parametrize("metric", [mean_log_density, mixture_crps])
def test_mixture_scores_refuse(metric: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"must have shape .*6\], got \[5\]"):
        metric(Y[:5], MEANS, VARIANCES)
    with pytest.raises(ValueError, match=r"shape \[N\] or \[N, 1\], got \[6, 2\]"):
        metric(np.stack([Y, Y], 1), MEANS, VARIANCES)
    with pytest.raises(ValueError, match="positive"):
        metric(Y, MEANS, -VARIANCES)


def test_calibration_error_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1.0, 0.5, 0.2], size=300)
    probabilities[0] = [1.0, 0.0, 0.0]  # the edge of the last bin
    labels = rng.integers(0, 3, 300)

    expected = 0.0
    for bin_number in range(15):
        rows = [
            row for row in range(300) if min(int(max(probabilities[row]) * 15), 14) == bin_number
        ]
        if rows:
            confidence = np.mean([max(probabilities[row]) for row in rows])
            right = np.mean([np.argmax(probabilities[row]) == labels[row] for row in rows])
            expected += len(rows) / 300 * abs(confidence - right)

    assert expected_calibration_error(probabilities, labels) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[1], [[0], [1], [1]], [0, 1]])
def test_calibration_error_refuses_labels_of_another_shape(labels: Any) -> None:
    """Would catch one label that counts for all rows, and the sum of them over that one."""
    with pytest.raises(ValueError, match=r"shapes \[N, C\] and \[N\], got \[3, 2\] and"):
        expected_calibration_error(np.full([3, 2], 0.5), labels)


def test_explained_variance_is_scikit_learns() -> None:
    rng = np.random.default_rng(3)
    truth, mean = rng.normal(size=(2, 50))

    assert explained_variance(truth, mean) == pytest.approx(r2_score(truth, mean))
    for equal in (1.0, 0.1):  # of which rounding makes a variance of 2e-34
        assert np.isnan(explained_variance(np.full(3, equal), np.zeros(3)))
