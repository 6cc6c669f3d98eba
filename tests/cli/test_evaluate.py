"""``gpflow-dwp evaluate``: its scores are those that fit reports, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import TrainedRun, run, write_csv

from gpflow_dwp.data import Table
from gpflow_dwp.evaluation import RawUnits

Trained = Callable[[str], TrainedRun]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_rows(table: Table) -> Path:
    """The rows of a table, with labels by name."""
    target = table.Y[:, 0]
    if table.classes is not None:
        target = np.array(table.classes)[target.astype(int)]
    cells = {table.target_name: target, "b": table.X[:, 1], "a": table.X[:, 0]}
    return write_csv(Path("rows.csv"), {name: values.tolist() for name, values in cells.items()})


@pytest.mark.parametrize(
    ("task", "error", "others"),
    [
        ("regression", "rmse", ["crps", "r2", "coverage_of_95%_intervals"]),
        ("three classes", "error_rate", ["ece", "mean_confidence"]),
    ],
)
def test_scores_of_test_rows_are_those_of_fit(
    trained: Trained,
    capsys: pytest.CaptureFixture[str],
    task: str,
    error: str,
    others: list[str],
) -> None:
    result = trained(task)
    path = write_rows(result.rows()[1])
    capsys.readouterr()

    assert run("evaluate", result.directory, path, "--json") == 0
    scores = json.loads(capsys.readouterr().out)
    assert run("evaluate", result.directory, path) == 0
    first, *lines = capsys.readouterr().out.splitlines()

    expected = result.deep_scores
    assert list(scores) == ["rows", "log_likelihood", error, *others]
    assert scores["rows"] == 10
    for name in ("log_likelihood", error, *others):
        known = {**result.metrics, **expected}
        assert scores[name] == pytest.approx(known[name], rel=1e-9)
    assert first == f"{'price' if task == 'regression' else 'label'}: 10 rows"
    assert lines[0] == f"log likelihood: {expected['log_likelihood']:.4f}"
    digits = ".4g" if error == "rmse" else ".4f"
    assert lines[1] == f"{error.replace('_', ' ')}: {expected[error]:{digits}}"


def test_scores_that_are_no_numbers_are_null(
    trained: Trained, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = trained("regression")
    monkeypatch.setattr(RawUnits, "log_density", lambda *_: np.array([-np.inf]))
    capsys.readouterr()
    assert run("evaluate", result.directory, write_rows(result.rows()[1]), "--json") == 0
    scores = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert scores["log_likelihood"] is None


@pytest.mark.parametrize(
    ("task", "table", "message"),
    [
        ("regression", {"a": [1.0], "b": [2.0]}, "no target column 'price'"),
        (
            "regression",
            {"a": [1.0], "b": [2.0], "price": ["dear"]},
            "'dear' in data row 1",
        ),
        (
            "three classes",
            {"a": [1.0], "b": [2.0], "label": ["perhaps"]},
            "holds 'perhaps' in data row 1, which training did not see; the classes are",
        ),
        (
            "three classes",
            {"a": [1.0], "b": [2.0], "label": [""]},
            "column 'label' has no value in data row 1",
        ),
    ],
)
def test_refuses(
    trained: Trained,
    refused: Callable[..., str],
    task: str,
    table: dict[str, list[object]],
    message: str,
) -> None:
    result = trained(task)
    assert message in refused("evaluate", result.directory, write_csv(Path("rows.csv"), table))
