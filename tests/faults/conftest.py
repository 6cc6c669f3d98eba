"""Commands that do little, and what became of a call that something was wrong with.

Short runs try some of the cases, the same every time; ``--runslow`` tries all.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
from command_line import columns, write_csv
from faults.states import Tree, read_tree, restore

from gpflow_dwp.cli import main
from gpflow_dwp.exceptions import NonFiniteBoundError

FIT = ("table.csv", "--target", "price", "--depth", "1", "--num-steps", "2", "--num-inducing", "2")
FIT += ("--quiet",)
# What is no array of finite numbers with the rows and axes of another.
NO_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "None": lambda A: None,
    "text": lambda A: np.full(A.shape, "7"),
    "one text": lambda A: put(A, "007"),
    "objects": lambda A: put(A, object()),
    "complex": lambda A: A + 1j,
    "dates": lambda A: np.full(A.shape, np.timedelta64(1, "s")),
    "fields": lambda A: np.zeros(A.shape, [("x", float)]),
    "ragged": lambda A: [[1.0], *[[1.0, 2.0]] * (len(A) - 1)],
    "nan": lambda A: put(A, np.nan, float),
    "inf": lambda A: put(A, -np.inf, float),
    "beyond float64": lambda A: put(A, 10**400),
    "scalar": lambda A: 1.0,
    "a cube": lambda A: np.zeros((len(A), 2, 2)),
    "no rows": lambda A: A[:0],
    "no columns": lambda A: A[..., :0],
    "one row less": lambda A: A[:-1],
}


def put(array: Any, value: Any, kind: Any = object) -> Any:
    """An array with another value in its second row."""
    changed = np.array(array, kind)
    changed[(1, *(0,) * (changed.ndim - 1))] = value
    return changed


class Outcome(NamedTuple):
    """What a call left.

    :param code: A command's exit code, 2 for a refusal of a function; None for any other exception,
        and for an end that is not told in one line.
    :param output: Of its standard output, or the value of a function.
    :param message: Of its standard error, or the exception's.
    """

    code: int | None
    output: str
    message: str


def command(*arguments: object) -> Outcome:
    """Run ``gpflow-dwp`` in this process; warnings are part of the message."""
    output, message = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(message),
        warnings.catch_warnings(record=True),
    ):
        warnings.simplefilter("always", UserWarning)
        try:
            code: int | None = main([str(argument) for argument in arguments])
        except Exception as error:
            return Outcome(None, output.getvalue(), f"{type(error).__name__}: {error}"[:600])
    lines = [line for line in message.getvalue().splitlines() if line.strip()]
    told = bool(lines) and all(line.startswith("gpflow-dwp") for line in lines)
    return Outcome(code if code == 0 or told else None, output.getvalue(), "\n".join(lines))


def attempt(call: Callable[[], Any], *refusals: type[Exception]) -> Outcome:
    """Call a function, which may refuse by errors of some types; their text is the message."""
    try:
        return Outcome(0, repr(call()), "")
    except refusals as error:
        return Outcome(2 if str(error).strip() else None, "", str(error))
    except Exception as error:
        return Outcome(None, "", f"{type(error).__name__}: {error}"[:600])


def not_refused(outcome: Outcome, pattern: str, what: str) -> list[str]:
    """What is wrong with an outcome that has to be a refusal with a message of a pattern."""
    if outcome.code == 2 and re.search(pattern, outcome.message):
        return []
    return [f"{what}: {outcome.code} {outcome.message[:300]!r}, not {pattern!r}"]


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Callable[[list[Any], int], list[Any]]:
    """Takes so many of a list of cases in a short run, and all of them in a long one."""

    def chosen(cases: list[Any], number: int) -> list[Any]:
        if request.config.getoption("--runslow") or number >= len(cases):
            return cases
        indices = np.random.default_rng(0).choice(len(cases), number, replace=False)
        return [cases[i] for i in sorted(indices)]

    return chosen


def _program(*_: object) -> dict[str, Any]:
    """Of a single function, which is quick to trace."""
    return {"same": lambda X, num_samples, seed: {"X": X}}


@pytest.fixture
def quick(eager: None, undrawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled, drawn or summed up, no simpler model is trained; files are as ever."""
    monkeypatch.setattr("gpflow_dwp.serving.export._functions", _program)
    monkeypatch.setattr("gpflow_dwp.cli.training.simple_scores", lambda *_, **__: {})
    monkeypatch.setattr("gpflow_dwp.cli.training.model_summary", lambda _: "a model")
    monkeypatch.setattr("gpflow_dwp.cli.training._SECONDS_BETWEEN_SAVES", 0.0)


@cache
def _finished() -> Tree:
    assert command("fit", *FIT, "--out", "run").code == 0
    return read_tree(Path("run"))


def finish_run() -> None:
    """A run in the folder of that name, which is trained once for all tests."""
    restore(_finished(), Path("run"))


def begin_run() -> None:
    """A run of that name that Ctrl-C ended after its last step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpflow_dwp.cli.training.judge", Mock(side_effect=KeyboardInterrupt))
        assert command("fit", *FIT, "--out", "run").code == 130


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the current one, with a table."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_csv(folder / "table.csv", columns("regression", 12))
    return folder


@pytest.fixture
def untrained(here: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a run; what should be refused ends with code 1 where it would compute."""
    begin = Mock(side_effect=NonFiniteBoundError("it was taken", step=0))
    finish_run()
    places = ("cli.training.fit", "cli.training.simple_scores")
    for name in (*places, "evaluation.predictions.predict", "evaluation.predictions.judge"):
        monkeypatch.setattr(f"gpflow_dwp.{name}", begin)
    return here
