"""Runs that are trained once, and commands that do not train at all."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf
from command_line import TrainedRun, columns, fit_options, run, write_csv

from gpflow_dwp.evaluation.predictions import judge
from gpflow_dwp.training import TrainingHistory

FIT = "gpflow_dwp.cli.training"


def fit_for_real(task: str, folder: Path) -> TrainedRun:
    """Run ``gpflow-dwp fit``, with less effort for the simpler models; nothing is compiled."""
    table = write_csv(folder / "table.csv", columns(task))
    directory = folder / "run"
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr("gpflow_dwp.evaluation.baselines._SCIPY_ITERATIONS", 20)
        tf.config.run_functions_eagerly(True)
        code = run("fit", table, *fit_options(task), "--out", directory)
        tf.config.run_functions_eagerly(False)
    return TrainedRun(task, table, directory, code, printed.getvalue())


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TrainedRun]:
    """The run of a task; trained when it is first asked for."""
    return cache(lambda task: fit_for_real(task, tmp_path_factory.mktemp("trained")))


@pytest.fixture
def quick(eager: None, undrawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled, drawn or summed up, and no simpler model is trained."""
    monkeypatch.setattr(f"{FIT}.simple_scores", lambda *_, **__: {})
    monkeypatch.setattr(f"{FIT}.model_summary", lambda _: "a model")
    monkeypatch.setattr(f"{FIT}.judge", partial(judge, num_samples=3))


@pytest.fixture
def untrained(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick, and ``fit`` takes no step."""

    def take_no_step(model: Any, data: Any, num_steps: int, **_: Any) -> TrainingHistory:
        bound = np.linspace(-2.0, -1.0, num_steps) * model.num_data
        return TrainingHistory(bound, np.zeros([num_steps, 2]), model.num_data, 1.5, "took all")

    monkeypatch.setattr(f"{FIT}.fit", take_no_step)


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a command that has to be refused before any training; return what it says."""
    fail = Mock(side_effect=AssertionError("training began"))
    using = "gpflow_dwp.evaluation.predictions"
    places = (f"{FIT}.fit", f"{FIT}.simple_scores", f"{using}.predict", f"{using}.judge")

    def refuse(*arguments: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        capsys.readouterr()
        # Only here: a test may train a model before.
        with monkeypatch.context() as patch:
            for place in places:
                patch.setattr(place, fail)
            assert run(*arguments) == 2
        output, message = capsys.readouterr()
        assert output == ""
        assert message.startswith(f"gpflow-dwp {arguments[0]}: error: ")
        first, *more = message.splitlines()  # of a table's problems each has a line
        assert all(line.startswith("  ") for line in more), (first, more)
        assert sorted(tmp_path.rglob("*")) == before
        return message

    return refuse
