"""Predictions in raw units, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from command_line import TrainedRun
from scipy import stats

from gpflow_dwp.cli.predictions import (
    INTERVAL,
    ClassificationPredictions,
    RegressionPredictions,
    predict,
)
from gpflow_dwp.data import Standardiser

Trained = Callable[[str], TrainedRun]
TARGET = Standardiser([100.0], [20.0])
X = np.random.default_rng(0).normal(size=[7, 2])
Y = 100.0 + 20.0 * np.random.default_rng(1).normal(size=[7, 1])

REGRESSION = RegressionPredictions(
    mean=np.array([1.0, 2.0]),
    deviation=np.array([0.5, 1.0]),
    lower=np.array([0.0, 0.0]),
    upper=np.array([2.0, 4.0]),
)
LABELS = ClassificationPredictions(np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]]))


def regression(trained: Trained, Y: np.ndarray | None = None) -> RegressionPredictions:
    predictions = predict(trained("regression").model(), X, TARGET, Y=Y, num_samples=4, seed=3)
    assert isinstance(predictions, RegressionPredictions)
    return predictions


def test_moments_and_intervals_are_those_of_the_mixture(trained: Trained) -> None:
    posterior = trained("regression").model().posterior(4, seed=3)
    means, variances = (part.numpy()[..., 0] for part in posterior.predict_y_components(X))
    means, variances = 100.0 + 20.0 * means, 400.0 * variances
    got = regression(trained, Y)
    np.testing.assert_allclose(got.mean, means.mean(axis=0))
    second_moment = (variances + means**2).mean(axis=0)
    np.testing.assert_allclose(got.deviation, np.sqrt(second_moment - means.mean(axis=0) ** 2))

    def below(y: np.ndarray) -> np.ndarray:
        return stats.norm.cdf(y, means, np.sqrt(variances)).mean(axis=0)

    np.testing.assert_allclose(below(got.lower), 0.5 - 0.5 * INTERVAL, atol=1e-9)
    np.testing.assert_allclose(below(got.upper), 0.5 + 0.5 * INTERVAL, atol=1e-9)
    np.testing.assert_allclose(got.probability_below, below(Y[:, 0]))


def test_without_targets_there_is_nothing_to_judge(trained: Trained) -> None:
    assert regression(trained).probability_below is None


def test_blocks_make_no_difference(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = regression(trained, Y)
    monkeypatch.setattr("gpflow_dwp.evaluation.raw_units._BLOCK", 3)
    parts = regression(trained, Y)
    for name in ("mean", "deviation", "lower", "upper", "probability_below"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9)


@pytest.mark.parametrize(("task", "classes"), [("two classes", 2), ("three classes", 3)])
def test_probabilities_of_each_class(trained: Trained, task: str, classes: int) -> None:
    model = trained(task).model()
    first, second = (predict(model, X, None, num_samples=4, seed=3) for _ in range(2))
    assert isinstance(first, ClassificationPredictions)
    assert isinstance(second, ClassificationPredictions)
    assert first.probabilities.shape == (7, classes)
    np.testing.assert_allclose(first.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)


def test_regression_columns() -> None:
    columns = REGRESSION.columns("y", None)
    assert list(columns) == ["y_mean", "y_sd", "y_lower_95", "y_upper_95"]
    np.testing.assert_array_equal(list(columns.values()), [[1, 2], [0.5, 1], [0, 0], [2, 4]])


def test_regression_scores() -> None:
    truth = np.array([[2.0], [5.0]])
    assert REGRESSION.error(truth) == pytest.approx(np.sqrt(5.0))
    assert REGRESSION.calibration(truth) == {"coverage_of_95%_intervals": 0.5}


def test_label_columns() -> None:
    columns = LABELS.columns("kind", ("x", "y", "z"))
    assert columns.pop("kind_predicted").tolist() == ["y", "x", "z"]
    assert list(columns) == [f"kind_probability_{name}" for name in "xyz"]
    np.testing.assert_array_equal(np.stack(list(columns.values()), 1), LABELS.probabilities)


def test_label_scores() -> None:
    assert LABELS.error(np.array([[1.0], [1.0], [2.0]])) == pytest.approx(1.0 / 3.0)
    calibration = LABELS.calibration(np.zeros([3, 1]))
    assert calibration == {"mean_confidence": pytest.approx((0.5 + 0.6 + 0.8) / 3.0)}
