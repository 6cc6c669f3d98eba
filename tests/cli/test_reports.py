"""What is printed and drawn beside results: that no name or number breaks it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.cli import figures
from gpflow_dwp.cli.figures import effect_of, relevances, shares, write_figures
from gpflow_dwp.cli.fit import FitData
from gpflow_dwp.cli.reports import as_json, named_scores, scores_as_text
from gpflow_dwp.data import Standardiser, Table
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.predictions import LabelPredictions, NumberPredictions, Scores

ENCODER = ColumnEncoder(("a", "town", "b"), {"town": ("north", "south")})


def test_json_has_null_for_what_is_not_finite() -> None:
    """Would catch words that JSON does not have; named tuples are told by their fields."""
    values = {"a": [1, math.nan, (math.inf, "inf")], "b": {"c": -math.inf, "d": 0.5, "e": None}}
    expected = {"a": [1, None, [None, "inf"]], "b": {"c": None, "d": 0.5, "e": None}}
    assert json.loads(as_json(values)) == expected
    (found,) = json.loads(as_json([Scores(None, 1.0, math.nan, 2.0)]))
    assert [found[name] for name in ("elbo", "error")] == [None, None]


def test_errors_of_any_size_are_told_apart() -> None:
    """Would catch scores of small or large units that are all zeros, or labels' named RMSE."""
    scores = {
        str(error): named_scores(Scores(None, 1.0, error, 2.0), "regression")
        for error in (1.234567e-12, 0.25, 1234567.0)
    }
    rows = scores_as_text(scores).splitlines()[2:]
    assert [row.split()[-2] for row in rows] == ["1.235e-12", "0.25", "1.235e+06"]
    assert named_scores(Scores(1.0, 2.0, 3.0, 4.0), "classification")["error_rate"] == 3.0


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions are 3 a + 0 town + b."""

    def predict(_: Any, X: np.ndarray, **__: Any) -> NumberPredictions:
        mean = 3.0 * X[:, 0] + X[:, 3]
        return NumberPredictions(mean, np.ones(len(X)), mean - 2.0, mean + 2.0)

    monkeypatch.setattr(figures, "predict", predict)


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    town = rng.integers(0, 2, 2000)
    return np.column_stack([rng.normal(size=2000), town == 0, town == 1, rng.normal(size=2000)])


@pytest.mark.usefixtures("linear")
def test_the_relevance_and_effect_of_linear_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch columns that are mixed up where a category has several inputs."""
    monkeypatch.setattr(figures, "_ROWS", 2000)
    X = rows()
    found = relevances(None, X, ENCODER, 0)
    assert list(found) == ["a", "b", "town"] and found["town"] == 0.0
    # Exchanged rows differ by the root of 2 standard deviations; those of predictions are sqrt(10).
    assert found["a"] == pytest.approx(3.0 * np.sqrt(2.0 / 10.0), rel=0.05)
    assert found["b"] == pytest.approx(np.sqrt(2.0 / 10.0), rel=0.05)
    values, predictions = effect_of("a", None, X, ENCODER)
    np.testing.assert_allclose(predictions.mean, 3.0 * values + np.median(X[:, 3]))
    places, predictions = effect_of("town", None, X, ENCODER)
    assert places.tolist() == [0.0, 1.0] and np.ptp(predictions.mean) == 0.0


def test_shares_are_by_column_where_the_kernel_is_a_sum() -> None:
    """Would catch inputs of a category that are told apart, and shares of a model without any."""
    X = rows()[:60]
    Y = 3.0 * X[:, [0]] + X[:, [2]]
    settings = {"depth": 1, "output": "regression", "likelihood": "gaussian"}
    model = build_deep_wishart_process((X, Y), kernel="AdditiveMatern52", **settings)
    found = shares(RawUnits(model), X, ENCODER)
    assert {*found} == {"a", "b", "town", "all jointly"} and sum(found.values()) == pytest.approx(1)
    assert next(iter(found)) in ("a", "all jointly")
    other = build_deep_wishart_process((X, Y), kernel="Matern52", **settings)
    assert shares(RawUnits(other), X, ENCODER) == {}


@pytest.mark.usefixtures("linear")
@pytest.mark.parametrize("truth", [[0.0, 1.0, 2.0, 0.0], [1.0], None])
def test_figures_can_be_drawn(tmp_path: Path, truth: list[float] | None) -> None:
    """Would catch a name that is taken for a formula, and classes that no test row has."""
    name = r"US$ a_b^c \alpha { 100%"
    X = rows()[: len(truth or "four")]
    if truth is None:
        Y, classes = np.linspace(0.0, 3.0, len(X))[:, None], None
        mean, ones = Y[:, 0] + 0.1, np.ones(len(X))
        found: Any = NumberPredictions(mean, ones, mean - 2.0, mean + 2.0, 0.5 * ones)
    else:
        Y, classes = np.array(truth)[:, None], (name, f"{name} $x$", "blue")
        found = LabelPredictions(np.random.default_rng(0).dirichlet(np.ones(3), len(X)))
    table = Table(X, Y, ENCODER.feature_names, name, classes)
    data = FitData(table, table, ENCODER, Standardiser.fit(X), None)
    column = "town" if truth else "a"
    write_figures(tmp_path, np.linspace(-3.0, -1.0, 20), 2, found, data, None, column)
    names = ["calibration", "effect", "learning_curve", "predictions"]
    assert sorted(path.stem for path in (tmp_path / "figures").iterdir()) == names
    for path in (tmp_path / "figures").iterdir():
        with Image.open(path) as image:
            assert image.format == "PNG" and min(image.size) > 150
            assert image.convert("L").getextrema() != (255, 255)  # not blank


@pytest.mark.usefixtures("linear")
def test_a_figure_that_cannot_be_drawn_is_a_warning(tmp_path: Path, capsys: Any) -> None:
    """Would catch a trained model, or the other figures, that one figure throws away."""
    X, ones = rows()[:4], np.ones(4)
    found = NumberPredictions(ones, ones, ones, ones, below=2.0 * ones)
    data = FitData(*[Table(X, X[:, :1], ENCODER.feature_names, "y")] * 2, ENCODER, None, None)  # type: ignore[arg-type]
    write_figures(tmp_path, np.linspace(-3.0, -1.0, 20), 2, found, data, None, "a")  # type: ignore[arg-type]
    names = ["effect", "learning_curve", "predictions"]
    assert sorted(path.stem for path in (tmp_path / "figures").iterdir()) == names
    message = "gpflow-dwp fit: warning: no figures/calibration.png: ValueError: pit must lie in"
    assert capsys.readouterr().err.startswith(message)
