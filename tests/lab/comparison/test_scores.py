"""Scores: each against a closed form or a loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from gpflow_dwp.evaluation.normal_prediction import NormalPrediction
from gpflow_dwp.lab.comparison import scores as module
from gpflow_dwp.lab.comparison.scores import (
    METRICS,
    EstimatorPrediction,
    classification_scores,
    regression_scores,
)

MEANS, DEVIATIONS = np.array([1.0, -2.0, 30.0]), np.array([0.5, 2.0, 10.0])


def test_regression_scores() -> None:
    means, y = np.array([0.0, 10.0]), np.array([1.0, 14.0])
    prediction = NormalPrediction(means, np.array([1.0, 2.0]))

    scores = regression_scores(prediction, y)

    assert set(scores) == {*METRICS["regression"]} - {"fit_seconds", "predict_seconds"}
    assert scores["nlpd"] == pytest.approx(-norm.logpdf(y, means, [1.0, 2.0]).mean())
    assert scores["rmse"] == pytest.approx(np.sqrt((1.0 + 16.0) / 2.0))
    assert scores["coverage_90"] == 0.5  # 1 and 2 standard deviations, of 1.64


def test_classification_scores() -> None:
    probabilities = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])

    scores = classification_scores(probabilities, np.array([0.0, 1.0, 2.0]))

    assert set(scores) == {*METRICS["classification"]} - {"fit_seconds", "predict_seconds"}
    eps = np.finfo(float).eps  # a label that was thought impossible costs much, but not everything
    assert scores["nll"] == pytest.approx(-np.log([0.7, 0.3, eps]).mean())
    assert scores["error"] == pytest.approx(2.0 / 3.0)


class StandInEstimator:
    """Has the public methods of a regressor; quantiles tell of the rows that they are asked of."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]

    def predict_log_density(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.abs(y - X[:, 0])

    def predict_quantiles(self, X: np.ndarray, levels: np.ndarray) -> np.ndarray:
        self.rows.append(len(X))
        return X[:, :1] + levels


def test_an_estimator_is_asked_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows must come back in order, and the last, shorter block must not be lost."""
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 3)
    X, estimator = np.arange(14.0).reshape(7, 2), StandInEstimator()
    prediction = EstimatorPrediction(estimator, X)

    found = prediction.quantiles(np.array([0.1, 0.9]))

    assert estimator.rows == [3, 3, 1]
    np.testing.assert_array_equal(found, X[:, :1] + [0.1, 0.9])
    np.testing.assert_array_equal(prediction.mean(), X[:, 0])
    np.testing.assert_array_equal(prediction.log_density(X[:, 1]), -np.ones(7))
