"""Runs that are cut off, and go on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from command_line import columns, read_csv, run, write_csv

from gpflow_dwp.files import read_sealed, seal
from gpflow_dwp.training import TrainingProgress, fit

OPTIONS = [
    *("--target", "price", "--test-fraction", "0.25", "--num-inducing", "8", "--depth", "1"),
    *("--num-steps", "6", "--missing", "x", "--quiet"),
]
TRAINING = "gpflow_dwp.cli.training"


@pytest.fixture(autouse=True)
def _a_table(quick: None) -> None:
    write_csv(Path("table.csv"), columns("regression"))


@pytest.fixture
def disturb(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have training saved after every step, and something done in its course."""

    def call(*callbacks: Callable[[TrainingProgress], None]) -> None:
        disturbed = partial(fit, callbacks=callbacks, callback_interval=2)
        monkeypatch.setattr(f"{TRAINING}.fit", disturbed)
        monkeypatch.setattr(f"{TRAINING}._SECONDS_BETWEEN_SAVES", 0.0)

    return call


def die(progress: TrainingProgress) -> None:
    if progress.step == 2:
        raise KeyboardInterrupt


def press_ctrl_c(progress: TrainingProgress) -> None:
    if progress.step == 4:
        os.kill(os.getpid(), signal.SIGINT)


def metrics(directory: str) -> dict[str, Any]:
    found = json.loads(Path(directory, "metrics.json").read_text())
    del found["provenance"]
    for scores in found["scores"].values():
        del scores["seconds"]
    return found


def test_a_run_that_is_cut_off_twice_ends_like_one_that_was_not(
    disturb: Callable[..., None], refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch steps that are lost, or other numbers than without an interruption."""
    assert run("fit", "table.csv", *OPTIONS, "--out", "whole") == 0
    capsys.readouterr()
    message = "gpflow-dwp fit: interrupted; gpflow-dwp fit --resume run goes on\n"

    disturb(die)
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 130
    assert capsys.readouterr().err == message
    assert not Path("run").exists() and Path("run.unfinished").is_dir()
    told = refused("fit", "table.csv", *OPTIONS, "--out", "run")
    assert "run holds an unfinished run: go on with it by --resume" in told

    disturb(press_ctrl_c)
    assert run("fit", "--resume", "run", "--quiet") == 130
    assert capsys.readouterr().err == message
    assert "--depth cannot go with --resume" in refused("fit", "--resume", "run", "--depth", "2")

    disturb()
    assert run("fit", "--resume", "run", "--quiet") == 0
    assert not Path("run.unfinished").exists()
    assert metrics("run") == metrics("whole")
    assert read_csv(Path("run/history.csv")) == read_csv(Path("whole/history.csv"))

    assert "run holds no run that could go on" in refused("fit", "--resume", "run")


def test_a_run_does_not_go_on_with_another_table(
    disturb: Callable[..., None], refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch steps on old rows that are followed by steps on new ones."""
    disturb(die)
    assert run("fit", "table.csv", *OPTIONS, "--out", "run") == 130
    write_csv(Path("table.csv"), columns("regression", 41))
    assert run("fit", "--resume", "run", "--quiet") == 2
    assert "run.unfinished/state holds a run with data=" in capsys.readouterr().err

    options = Path("run.unfinished/options.json")
    options.write_text(json.dumps(seal(read_sealed(options) | {"of_another_version": 1})))
    assert "options.json was not written by this version" in refused("fit", "--resume", "run")


def test_what_has_been_trained_is_kept_whatever_comes_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a search that is lost to Ctrl-C or an error while its model is judged."""
    given = ["--target", "price", "--effort", "quick", "--num-inducing", "5", "--quiet"]
    given += ["--kernel", "SquaredExponential", "--likelihood", "gaussian"]
    with monkeypatch.context() as patch:
        patch.setattr(f"{TRAINING}.judge", Mock(side_effect=KeyboardInterrupt))
        assert run("fit", "table.csv", *given, "--out", "run") == 130
    monkeypatch.setattr(f"{TRAINING}.select_model", Mock(side_effect=KeyboardInterrupt))
    table = Path("table.csv").read_text()
    write_csv(Path("table.csv"), columns("regression", 41))
    assert run("fit", "--resume", "run") == 2
    assert "run.unfinished holds a run of another table" in capsys.readouterr().err

    Path("table.csv").write_text(table)
    for name in ("judge", "relevances"):
        monkeypatch.setattr(f"{TRAINING}.{name}", Mock(side_effect=ValueError("pit must lie in")))
    assert run("fit", "--resume", "run") == 0
    warned = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[2] for line in warned] == [
        *("no scores of the model", "no relevance of columns"),
    ]
    assert run("info", "run") == 0
    assert "missing: figures/" in capsys.readouterr().out
    assert run("predict", "run", "table.csv", "-o", "p.csv") == 0
