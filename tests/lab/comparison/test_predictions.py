"""Predictions: normal ones, and what our estimator says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from gpflow_dwp.lab.comparison import EstimatorPrediction, NormalPrediction, predictions

MEANS, DEVIATIONS = np.array([1.0, -2.0, 30.0]), np.array([0.5, 2.0, 10.0])


def test_normal_log_density_is_that_of_the_formula() -> None:
    y = np.array([1.2, 0.0, 55.0])

    found = NormalPrediction(MEANS, DEVIATIONS).log_density(y)

    expected = -0.5 * ((y - MEANS) / DEVIATIONS) ** 2 - np.log(DEVIATIONS * np.sqrt(2.0 * np.pi))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("deviations", [DEVIATIONS, 2.5])
def test_normal_quantiles_invert_the_distribution_function(deviations: object) -> None:
    """With one deviation for all rows, too, which must not become an axis of its own."""
    levels = np.array([0.05, 0.5, 0.8])

    found = NormalPrediction(MEANS, deviations).quantiles(levels)

    assert found.shape == (3, 3)
    z = (found - MEANS[:, None]) / np.broadcast_to(deviations, 3)[:, None]
    np.testing.assert_allclose(ndtr(z), np.tile(levels, (3, 1)), rtol=1e-12)


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
    monkeypatch.setattr(predictions, "_ROWS_AT_ONCE", 3)
    X, estimator = np.arange(14.0).reshape(7, 2), StandInEstimator()
    prediction = EstimatorPrediction(estimator, X)

    found = prediction.quantiles(np.array([0.1, 0.9]))

    assert estimator.rows == [3, 3, 1]
    np.testing.assert_array_equal(found, X[:, :1] + [0.1, 0.9])
    np.testing.assert_array_equal(prediction.mean(), X[:, 0])
    np.testing.assert_array_equal(prediction.log_density(X[:, 1]), -np.ones(7))
