"""Where a run goes, who may write there, and that a killed process loses nothing."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from faults.states import each_end

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.runs import Run, TrainedRun, new_run
from gpflow_dwp.files import seal

X = Path("x")


NAMES = ("run.json", "metrics.json", "options.json", "model/model.zip")


def a_run(directory: Path) -> None:
    """Some files of a run, all of which say the same."""
    (directory / "model").mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (directory / name).write_text("second")


def begin() -> None:
    """What a process leaves that is killed after a step."""
    with new_run(X, "x") as run:
        run.state.mkdir()
        (run.state / "save-1").write_text("step")


def write() -> None:
    """Write a run, as ``fit`` does."""
    with new_run(X, "x") as run:
        a_run(run.work)
        run.finish()


def test_next_free_number_is_taken() -> None:
    """Would catch two runs that begin at once and share a folder."""
    with ExitStack() as stack:
        for number in (1, 2):
            run = stack.enter_context(new_run(None, "houses"))
            assert run.directory == Path("runs") / f"houses-{number}" and run.work.is_dir()
    a_run(Path("runs/yacht-1"))
    with new_run(None, "yacht") as run:
        assert run.directory == Path("runs/yacht-2")


def test_nothing_that_is_there_is_replaced() -> None:
    """Would catch a run, or files of the user's, that are lost."""
    a_run(X)
    with pytest.raises(UsageError, match="--out x is there already: choose another, or remove it"):
        begin()
    with pytest.raises(UsageError, match="which holds a run"), new_run(X / "inner", ""):
        pass


def test_whenever_it_is_killed_there_is_a_whole_run_or_none() -> None:
    """Would catch a moment in which a kill leaves a part of one."""
    seen = []
    for _ in each_end(write, Path.cwd()):
        seen.append(X.exists())
        if seen[-1]:
            assert {(X / name).read_text() for name in NAMES} == {"second"}
        else:
            with new_run(X, "x") as run:  # which clears away what is left
                assert not any(run.work.iterdir())
    assert len(seen) > 8 and {True, False} == {*seen}


def test_two_cannot_work_in_one_directory() -> None:
    """Would catch two processes that write one run."""
    begin()
    with Run(X).hold():
        for other in (new_run(X, "x"), Run(X).hold()):
            with pytest.raises(UsageError, match="^x is in use by another gpflow-dwp fit$"), other:
                pass


def test_a_description_of_another_version_says_so() -> None:
    Path("run.json").write_text(json.dumps(seal({"format": "gpflow_dwp.run", "format_version": 2})))
    with pytest.raises(UsageError, match="was not written by this version"):
        TrainedRun.read(Path())
