"""Figures of runs: which there are, and that no name or number breaks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gpflow_dwp.cli.figures import write_figures
from gpflow_dwp.data import Table
from gpflow_dwp.evaluation.predictions import LabelPredictions, NumberPredictions

ELBO = np.linspace(-3.0, -1.0, 20)
ALL = ["calibration.png", "learning_curve.png", "predictions.png"]


def written(
    folder: Path, predictions: NumberPredictions | LabelPredictions, table: Table
) -> list[str]:
    """The names of the figures, each of which can be read."""
    write_figures(folder / "figures", ELBO, predictions, table)
    paths = sorted((folder / "figures").iterdir())
    for path in paths:
        with Image.open(path) as image:
            assert image.format == "PNG" and min(image.size) > 300
            assert image.convert("L").getextrema() != (255, 255)  # not blank
    return [path.name for path in paths]


def regression(rows: int, *, judged: bool = True) -> NumberPredictions:
    mean = np.linspace(0.0, 1.0, rows)
    below = np.linspace(0.1, 0.9, rows) if judged else None
    return NumberPredictions(mean, np.ones(rows), mean - 2.0, mean + 2.0, below)


def numbers(rows: int, name: str = "price") -> Table:
    return Table(np.ones([rows, 1]), np.linspace(0.0, 3.0, rows)[:, None], ("a",), name)


def labels(values: list[float], classes: tuple[str, ...], name: str = "kind") -> Table:
    X = np.ones([len(values), 1])
    return Table(X, np.array(values)[:, None], ("a",), name, "classification", classes)


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_regression(tmp_path: Path, rows: int) -> None:
    assert written(tmp_path, regression(rows), numbers(rows)) == ALL


def test_calibration_needs_targets(tmp_path: Path) -> None:
    names = written(tmp_path, regression(5, judged=False), numbers(5))
    assert names == ["learning_curve.png", "predictions.png"]


@pytest.mark.parametrize(
    "truth",
    [
        [0.0, 1.0, 2.0, 0.0],  # some are right
        [0.0, 1.0, 2.0, 2.0],  # all are right
        [1.0, 2.0, 0.0, 0.0],  # none is right
        [1.0, 1.0, 1.0, 1.0],  # classes that are not among the test rows
    ],
)
def test_classification(tmp_path: Path, truth: list[float]) -> None:
    probabilities = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]])
    table = labels(truth, ("red", "green", "blue"))
    assert written(tmp_path, LabelPredictions(probabilities), table) == ALL


def test_one_row_of_a_label(tmp_path: Path) -> None:
    predictions = LabelPredictions(np.array([[0.8, 0.2]]))
    assert written(tmp_path, predictions, labels([0.0], ("no", "yes"))) == ALL


@pytest.mark.parametrize("name", ["$^$", r"US$ a_b^c \alpha { 100%"])
def test_names_are_shown_as_they_are(tmp_path: Path, name: str) -> None:
    (tmp_path / "numbers").mkdir()
    (tmp_path / "labels").mkdir()
    assert written(tmp_path / "numbers", regression(3), numbers(3, name)) == ALL
    predictions = LabelPredictions(np.array([[0.8, 0.2]]))
    table = labels([0.0], (name, f"{name} $x$"), name)
    assert written(tmp_path / "labels", predictions, table) == ALL
