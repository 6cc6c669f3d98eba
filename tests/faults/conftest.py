"""Commands that do little, and the count of what became of each fault.

``GPFLOW_DWP_FAULTS_SUMMARY`` names a JSON file that the counts go to.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import ShapeCheckingState, get_enable_check_shapes, set_enable_check_shapes
from command_line import columns, write_csv
from faults.outcomes import Tally, command, write_summary
from faults.states import Tree, read_tree, restore

from gpflow_dwp.exceptions import NonFiniteBoundError

FIT = ("table.csv", "--target", "price", "--depth", "1", "--num-steps", "2", "--num-inducing", "2")
FEW = ("--num-samples", "1", "--quiet")
_COUNTS: defaultdict[str, Counter[str]] = defaultdict(Counter)


def pytest_sessionfinish() -> None:
    """Write the summary."""
    name = os.environ.get("GPFLOW_DWP_FAULTS_SUMMARY")
    if name and _COUNTS:
        write_summary(Path(name), _COUNTS)


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether every case is to be tried, as with ``--runslow``, or only some of them."""
    return bool(request.config.getoption("--runslow"))


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Counts for the part of the campaign that a test's module is."""
    counted = Tally(_COUNTS, request.module.PART)
    yield counted
    counted.check()


@contextlib.contextmanager
def quick_commands() -> Iterator[None]:
    """Nothing is compiled or drawn, and no simpler model is trained; files are as ever."""

    def save(figure: Any, path: Path, **_: Any) -> None:
        Path(path).write_bytes(b"a figure")

    shapes = get_enable_check_shapes()
    set_enable_check_shapes(ShapeCheckingState.DISABLED)
    tf.config.run_functions_eagerly(True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.figure.Figure, "savefig", save)
        patch.setattr("gpflow_dwp.cli.fit_run.simple_scores", lambda *_, **__: {})
        patch.setattr("gpflow_dwp.cli.fit_training._SECONDS_BETWEEN_SAVES", 0.0)
        yield
    tf.config.run_functions_eagerly(False)
    set_enable_check_shapes(shapes)


@pytest.fixture
def quick() -> Iterator[None]:
    with quick_commands():
        yield


@cache
def _finished(*options: object) -> Tree:
    assert command("fit", *FIT, *FEW, "--out", "run", *options).code == 0
    return read_tree(Path("run"))


def finish_run(*options: object) -> None:
    """A run in the folder of that name, which is trained once for all tests."""
    restore(_finished(*options), Path("run"))


def begin_run(*options: object) -> None:
    """A run that Ctrl-C ended after its last step."""

    def press(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpflow_dwp.cli.fit_run.judge", press)
        assert command("fit", *FIT, *FEW, *options).code == 130


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the current one, with a table."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_csv(folder / "table.csv", columns("regression", 12))
    return folder


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """What should have been refused ends with code 1 where it begins to train or to predict."""

    def begin(*_: Any, **__: Any) -> None:
        raise NonFiniteBoundError("it was taken", step=0)

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", begin)
    monkeypatch.setattr("gpflow_dwp.cli.fit_run.simple_scores", begin)
    monkeypatch.setattr("gpflow_dwp.evaluation.predict", begin)
    monkeypatch.setattr("gpflow_dwp.evaluation.judge", begin)


def some(rows: list[Any], is_long: bool, number: int) -> list[Any]:
    """All rows or, in a short run, some of them, the same every time."""
    if is_long or number >= len(rows):
        return rows
    rng = np.random.default_rng(0)
    return [rows[i] for i in sorted(rng.choice(len(rows), number, replace=False))]
