"""Runs that are cut off, go on, and stop early."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import columns, content, read_csv, run, write_csv

from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.training import TrainingHistory, TrainingProgress, fit

OPTIONS = [
    *("--target", "price", "--test-fraction", "0.25", "--num-inducing", "8", "--depth", "1"),
    *("--num-samples", "2", "--num-steps", "12", "--callback-interval", "2", "--quiet"),
    *("--validation-fraction", "0.2", "--patience", "20"),
]
Press = Callable[[TrainingProgress], None]


@pytest.fixture(autouse=True)
def _a_table(quick: None) -> None:
    write_csv(Path("table.csv"), columns("regression"))


@pytest.fixture
def disturb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Press | None], None]:
    """Have training saved after every step, and something done in its course."""

    def set_press(press: Press | None) -> None:
        def disturbed(*arguments: Any, callbacks: Any, **named: Any) -> TrainingHistory:
            more = [*callbacks, *([] if press is None else [press])]
            named["seconds_between_checkpoints"] = 0.0
            return fit(*arguments, callbacks=more, **named)

        monkeypatch.setattr("gpflow_dwp.cli.training.fit", disturbed)

    return set_press


def die(progress: TrainingProgress) -> None:
    if progress.step == 6:
        raise KeyboardInterrupt


def press_ctrl_c(progress: TrainingProgress) -> None:
    if progress.step == 10:
        os.kill(os.getpid(), signal.SIGINT)


def metrics(directory: str) -> dict[str, Any]:
    found = json.loads(Path(directory, "metrics.json").read_text())
    del found["provenance"], found["prediction_seconds"], found["sha256"]
    for scores in found["scores"].values():
        del scores["seconds"]
    return found


def test_a_run_that_is_cut_off_twice_ends_like_one_that_was_not(
    disturb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch steps that are lost, or other numbers than without an interruption."""
    assert run("fit", "table.csv", *OPTIONS, "--out", "whole") == 0
    capsys.readouterr()
    message = "gpflow-dwp fit: interrupted; gpflow-dwp fit --resume run goes on\n"

    disturb(die)
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 130
    assert capsys.readouterr().err == message
    assert not Path("run").exists() and Path("run.unfinished").is_dir()
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 2
    assert "run holds an unfinished run; go on with it by --resume" in capsys.readouterr().err

    disturb(press_ctrl_c)
    assert run("fit", "--resume", "run", "--quiet") == 130
    assert capsys.readouterr().err == message
    assert run("fit", "--resume", "run", "--depth", "2") == 2
    assert "--depth cannot go with --resume" in capsys.readouterr().err

    disturb(None)
    assert run("fit", "--resume", "run", "--quiet") == 0
    assert not Path("run.unfinished").exists()
    assert metrics("run") == metrics("whole")
    assert read_csv(Path("run/history.csv")) == read_csv(Path("whole/history.csv"))

    assert run("fit", "--resume", "run") == 2
    assert "run holds no run that could go on" in capsys.readouterr().err


def test_a_run_does_not_go_on_with_another_table(
    disturb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch steps on old rows that are followed by steps on new ones."""
    disturb(die)
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 130
    write_csv(Path("table.csv"), columns("regression", 41))
    assert run("fit", "--resume", "run", "--quiet") == 2
    assert "run.unfinished/state holds a run with data=" in capsys.readouterr().err


def test_a_run_that_fails_leaves_the_old_one(
    disturb: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch an old run that goes before the new one is there."""
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 0
    before = content(Path("run"))

    def fail(*_: object, **__: object) -> None:
        raise NonFiniteBoundError("Training stopped at step 3.", step=3)

    monkeypatch.setattr("gpflow_dwp.cli.training.fit", fail)
    assert run("fit", "table.csv", *OPTIONS, "--out", "run", "--overwrite") == 1
    assert content(Path("run")) == before and not Path("run.unfinished").exists()


def test_training_stops_early_and_reports_the_best(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a bound of steps that were taken back."""
    scores = iter([0.0, 2.0, 1.0, 1.5, 3.0])
    monkeypatch.setattr(
        "gpflow_dwp.training.early_stopping.EarlyStopping._make_evaluation",
        lambda *_: lambda: next(scores),
    )
    options = [option if option != "20" else "2" for option in OPTIONS]
    assert run("fit", "table.csv", *options, "--out", "run") == 0
    output = capsys.readouterr().out
    assert output.startswith("price: 24 training rows, 6 validation rows, 10 test rows, 2 inputs")
    assert "\nThe validation rows are predicted best after step 4.\n" in output
    found = metrics("run")
    assert (found["steps"], found["best_step"], found["validation_rows"]) == (8, 4, 6)
    elbo = [float(value) for value in read_csv(Path("run/history.csv"))["elbo_per_datum"]]
    bound = found["scores"]["deep Wishart process, depth 1"]["elbo"]
    assert bound == pytest.approx(sum(elbo[:4]) / 4)
