"""Logs of a run: their rows, and that a run that goes on leaves no step twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import CSVLog, JSONLinesLog, TrainingHistory, TrainingProgress
from gpflow_dwp.training.run_log import RunLog

DATA = toy_data()
LOGS = [CSVLog, JSONLinesLog]


def rows(path: Path) -> list[dict[str, Any]]:
    """A log's rows, with numbers as numbers."""
    text = path.read_text()
    if text.startswith("{"):
        return [json.loads(line) for line in text.splitlines()]
    return [
        {name: float(value) for name, value in row.items()}
        for row in csv.DictReader(text.splitlines())
    ]


def progress(step: int, elbo: float = -6.0) -> TrainingProgress:
    return TrainingProgress(step, 10, elbo, tiny_model(1), step / 10)


def train(log: RunLog, directory: Path | None = None, also: Any = ()) -> TrainingHistory:
    arguments: dict[str, Any] = {"checkpoint_directory": directory, "progress": False}
    model = tiny_model(1)
    return fit(model, DATA, 10, callbacks=[log, *also], callback_interval=3, **arguments)


@pytest.mark.parametrize("kind", LOGS)
def test_a_row_for_each_call(kind: type[RunLog], tmp_path: Path) -> None:
    path = tmp_path / "new" / "log"
    log = kind(path, {"noise": lambda progress: progress.model.likelihood.variance.numpy()})

    history = train(log)

    written = rows(path)
    assert log.columns == ("step", "seconds", "elbo", "elbo_per_datum", "noise")
    assert [tuple(row) for row in written] == 4 * [log.columns]
    assert [row["step"] for row in written] == [3, 6, 9, 10]
    cuts = [history.elbo[first:last].mean() for first, last in [(0, 3), (3, 6), (6, 9), (9, 10)]]
    np.testing.assert_allclose([row["elbo"] for row in written], cuts, rtol=1e-12)
    np.testing.assert_allclose([12 * row["elbo_per_datum"] for row in written], cuts, rtol=1e-12)
    seconds = [row["seconds"] for row in written]
    assert 0.0 < seconds[0] <= seconds[-1] <= history.seconds + 1e-3


@pytest.mark.parametrize("kind", LOGS)
def test_a_run_that_goes_on_leaves_the_log_of_one_that_was_not_cut_off(
    kind: type[RunLog], tmp_path: Path
) -> None:
    def die(progress: TrainingProgress) -> None:
        raise RuntimeError("died")

    def stop(progress: TrainingProgress) -> bool:
        return progress.step == 6

    train(kind(tmp_path / "whole"))
    log = tmp_path / "log"

    train(kind(log), tmp_path / "state", [stop])
    with pytest.raises(RuntimeError, match="died"):  # after a row that no checkpoint knows
        train(kind(log), tmp_path / "state", [die])
    assert [row["step"] for row in rows(log)] == [3, 6, 9]
    with log.open("a") as file:
        file.write('{"step": 1')  # the process died while it wrote
    train(kind(log), tmp_path / "state")

    found, expected = rows(log), rows(tmp_path / "whole")
    for row in (*found, *expected):
        del row["seconds"]
    assert found == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "state", "whole"]


def test_the_bound_of_a_resumed_call_is_over_all_its_steps(tmp_path: Path) -> None:
    steps = []

    def note_and_stop(progress: TrainingProgress) -> bool:
        steps.append(progress.step)
        return True

    whole = train(CSVLog(tmp_path / "whole"))
    model = tiny_model(1)
    settings: dict[str, Any] = {"checkpoint_directory": tmp_path / "state", "progress": False}
    # Saved between two calls of the callbacks that follow.
    fit(model, DATA, 10, callbacks=[note_and_stop], callback_interval=5, **settings)
    train(CSVLog(tmp_path / "log"), tmp_path / "state")

    assert steps == [5]
    found = rows(tmp_path / "log")
    assert [row["step"] for row in found] == [6, 9, 10]
    assert found[0]["elbo"] == pytest.approx(whole.elbo[3:6].mean(), rel=1e-12)


@pytest.mark.parametrize("kind", LOGS)
def test_a_new_run_starts_the_file_anew(kind: type[RunLog], tmp_path: Path) -> None:
    for steps in ((1, 2), (5,)):
        log = kind(tmp_path / "log")
        log.begin(0, tiny_model(1))
        for step in steps:
            log(progress(step))

    assert [row["step"] for row in rows(tmp_path / "log")] == [5]


def test_a_value_that_is_not_finite_is_null_in_json(tmp_path: Path) -> None:
    log = JSONLinesLog(tmp_path / "log", {"validation": lambda progress: np.nan})
    log.begin(0, tiny_model(1))

    log(progress(1))

    assert rows(tmp_path / "log")[0]["validation"] is None


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("step", [0, 3])
def test_a_file_that_is_no_log_is_left_alone(kind: type[RunLog], step: int, tmp_path: Path) -> None:
    path = tmp_path / "houses.csv"
    path.write_text("area,price\n1,2\n")

    with pytest.raises(ValueError, match=r"houses.csv is not the log of a run like this one"):
        kind(path).begin(step, tiny_model(1))

    assert path.read_text() == "area,price\n1,2\n"


def test_a_run_does_not_go_on_in_other_columns(tmp_path: Path) -> None:
    CSVLog(tmp_path / "log").begin(0, tiny_model(1))

    with pytest.raises(ValueError, match="its columns are step, seconds, elbo, elbo_per_datum"):
        CSVLog(tmp_path / "log", {"noise": lambda _: 0.0}).begin(3, tiny_model(1))


def test_names_of_metrics_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must not be called 'elbo'"):
        CSVLog(tmp_path / "log", {"elbo": lambda _: 0.0})
