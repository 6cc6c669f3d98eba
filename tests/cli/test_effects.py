"""What is said of inputs: against a function that is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpflow_dwp.cli import effects
from gpflow_dwp.cli.effects import effect_of, relevances
from gpflow_dwp.data import ColumnEncoder
from gpflow_dwp.evaluation.predictions import NumberPredictions

ENCODER = ColumnEncoder(("a", "town", "b"), {"town": ("north", "south")})


@pytest.fixture(autouse=True)
def _linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions are 3 a + 0 town + b."""

    def predict(_: Any, X: np.ndarray, **__: Any) -> NumberPredictions:
        mean = 3.0 * X[:, 0] + X[:, 3]
        return NumberPredictions(mean, np.ones(len(X)), mean - 2.0, mean + 2.0)

    monkeypatch.setattr(effects, "predict", predict)


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    town = rng.integers(0, 2, 2000)
    return np.column_stack([rng.normal(size=2000), town == 0, town == 1, rng.normal(size=2000)])


def test_the_relevance_of_linear_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch columns that are mixed up where a category has several inputs."""
    monkeypatch.setattr(effects, "_ROWS", 2000)
    found = relevances(None, rows(), ENCODER, 0)
    assert list(found) == ["a", "b", "town"] and found["town"] == 0.0
    # Exchanged rows differ by the root of 2 standard deviations; those of predictions are sqrt(10).
    assert found["a"] == pytest.approx(3.0 * np.sqrt(2.0 / 10.0), rel=0.05)
    assert found["b"] == pytest.approx(np.sqrt(2.0 / 10.0), rel=0.05)


def test_the_effect_of_a_column_is_at_the_medians_of_others() -> None:
    """Would catch other inputs that move, too."""
    X = rows()
    values, predictions = effect_of("a", None, X, ENCODER, 0)
    np.testing.assert_allclose(predictions.mean, 3.0 * values + np.median(X[:, 3]))
    places, predictions = effect_of("town", None, X, ENCODER, 0)
    assert places.tolist() == [0.0, 1.0] and np.ptp(predictions.mean) == 0.0
