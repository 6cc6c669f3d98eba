"""Scores of predictions against second implementations, and what becomes of them in other units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import Scores, expected_calibration_error, interval_coverage, rmse


def test_numbers() -> None:
    y, mean = np.random.default_rng(3).normal(size=(2, 50))
    known = {"crps": 0.5, "log_likelihood": -1.0, "seconds": 2.0, "elbo": -3.0}
    scores = Scores.of_numbers(y, mean, **known)
    error, r2 = np.sqrt(np.mean((y - mean) ** 2)), r2_score(y, mean)
    assert scores == pytest.approx(Scores(-3.0, -1.0, error, 2.0, crps=0.5, r2=r2))
    for equal in (1.0, 0.1):  # of which rounding makes a variance of 2e-34
        assert np.isnan(Scores.of_numbers(np.full(3, equal), np.zeros(3), **known).r2)


def test_labels() -> None:
    probabilities = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]])
    known = {"elbo": None, "log_likelihood": -1.0, "seconds": 2.0}
    scores = Scores.of_labels(np.ones(3), probabilities, **known)
    assert scores.error == pytest.approx(2.0 / 3.0)
    assert scores.ece == pytest.approx((0.5 + 0.6 + 0.8) / 3.0)
    assert (scores.elbo, scores.crps, scores.r2) == (None, None, None)


def test_units() -> None:
    target, scores = Standardiser([100.0], [20.0]), Scores(-3.0, -1.0, 0.5, 2.0, crps=0.25, r2=0.1)
    raw = scores.in_raw_units(target)
    # A density per unit is less by the factor of the scale, a distance is more by it.
    assert raw == pytest.approx(
        (-3.0 - np.log(20.0), -1.0 - np.log(20.0), 10.0, 2.0, 5.0, 0.1, None)
    )
    assert scores.in_raw_units(None) == scores
    assert Scores(None, 1.0, 0.5, 2.0).in_raw_units(target).elbo is None


def test_interval_coverage_includes_the_ends() -> None:
    assert (
        interval_coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 2.5, 0.0], [1.0, 1.0, 3.0, 2.9]) == 0.5
    )


@pytest.mark.parametrize("metric", [rmse, lambda a, b: interval_coverage(a, b, b)])
def test_refuses_shapes_that_would_broadcast(metric: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"shapes must be the same .* y_true \[3, 1\], .* \[3\]"):
        metric(np.ones([3, 1]), np.ones(3))
    with pytest.raises(ValueError, match="not empty"):
        metric([], [])


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
