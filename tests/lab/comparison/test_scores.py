"""Scores: each against a closed form or a loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from gpflow_dwp.evaluation import mixture_crps
from gpflow_dwp.lab.comparison import scores as module
from gpflow_dwp.lab.comparison.scores import (
    LEVELS,
    METRICS,
    EstimatorPrediction,
    NormalPrediction,
    classification_scores,
    quantile_crps,
    regression_scores,
)

MEANS, DEVIATIONS = np.array([1.0, -2.0, 30.0]), np.array([0.5, 2.0, 10.0])


@pytest.mark.parametrize(("z", "tolerance"), [(0.0, 1e-5), (-1.0, 1e-4), (1.0, 1e-4), (3.0, 2e-3)])
def test_crps_of_a_normal_is_the_closed_form(z: float, tolerance: float) -> None:
    """Gneiting and Raftery (2007), eq. 21: a factor of 2, or pinballs the wrong way round."""
    deviation = 5.0
    y = np.array([10.0 + z * deviation])

    found = quantile_crps(y, NormalPrediction(np.array([10.0]), deviation).quantiles(LEVELS))

    exact = z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    assert found == pytest.approx(deviation * exact, abs=deviation * tolerance)


def test_crps_is_that_of_the_librarys_exact_one() -> None:
    pytest.importorskip("scoringrules")
    rng = np.random.default_rng(0)
    y, means, deviations = rng.normal(size=(3, 200))
    deviations = 0.2 + np.abs(deviations)

    found = quantile_crps(y, NormalPrediction(means, deviations).quantiles(LEVELS))

    exact = mixture_crps(y, means[None], np.square(deviations)[None])
    assert found == pytest.approx(exact, rel=2e-3)


def test_crps_of_a_skewed_distribution_is_the_pinball_loss_by_a_loop() -> None:
    y, quantiles = np.array([0.3, 2.0]), -np.log1p(-LEVELS) * np.array([[1.0], [3.0]])

    expected = 0.0
    for target, row in zip(y, quantiles, strict=True):
        for level, quantile in zip(LEVELS, row, strict=True):
            error = target - quantile
            expected += 2.0 * (level * error if error > 0.0 else (level - 1.0) * error)

    assert quantile_crps(y, quantiles) == pytest.approx(expected / (2 * len(LEVELS)), rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 98), (2, 99), (99,)])
def test_crps_of_other_shapes_is_refused(shape: tuple[int, ...]) -> None:
    """Broadcasting would turn them into a number."""
    with pytest.raises(ValueError, match=r"quantiles must have shape \[N, 99\]"):
        quantile_crps(np.zeros(3), np.zeros(shape))


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
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 3)
    X, estimator = np.arange(14.0).reshape(7, 2), StandInEstimator()
    prediction = EstimatorPrediction(estimator, X)

    found = prediction.quantiles(np.array([0.1, 0.9]))

    assert estimator.rows == [3, 3, 1]
    np.testing.assert_array_equal(found, X[:, :1] + [0.1, 0.9])
    np.testing.assert_array_equal(prediction.mean(), X[:, 0])
    np.testing.assert_array_equal(prediction.log_density(X[:, 1]), -np.ones(7))
