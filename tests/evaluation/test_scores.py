"""Scores of predictions against second implementations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from gpflow_dwp.evaluation.predictions import Scores, expected_calibration_error


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


def test_calibration_error_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1.0, 0.5, 0.2], size=300)
    probabilities[0] = [1.0, 0.0, 0.0]  # the edge of the last bin
    labels = rng.integers(0, 3, 300)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * 15).astype(int), 14)
    expected = sum(
        np.mean(bins == number) * abs(confidence[bins == number].mean() - share.mean())
        for number in range(15)
        if len(share := right[bins == number])
    )
    assert expected_calibration_error(probabilities, labels) == pytest.approx(expected)
