"""An unfinished run: begun, replaced by another, brought back, and tied to its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.unfinished import UnfinishedRun


def begin(directory: Path, note: str, *, steps: bool = True) -> UnfinishedRun:
    run = UnfinishedRun(directory)
    run.begin(lambda path: path.write_text(note) and None)
    if steps:
        run.state.mkdir()
        (run.state / "save-1").write_text(note)
    return run


def test_what_is_replaced_comes_back_when_the_new_one_is_discarded(tmp_path: Path) -> None:
    for note in ("first", "second"):
        begin(tmp_path, note)
    run = begin(tmp_path, "third")
    assert run.configuration.read_text() == "third"
    for note in ("second", "first"):
        run.discard()
        assert (run.state / "save-1").read_text() == note
    run.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_steps_is_not_kept(tmp_path: Path) -> None:
    begin(tmp_path, "first")
    begin(tmp_path, "second", steps=False)
    run = begin(tmp_path, "third")
    run.discard()
    assert run.configuration.read_text() == "first"


def test_options_that_cannot_be_written_leave_the_old_run(tmp_path: Path) -> None:
    run = begin(tmp_path, "first")

    def fail(path: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run.begin(fail)
    assert run.has_steps and [path.name for path in tmp_path.iterdir()] == ["unfinished"]


def test_a_table_that_has_changed_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n1,2\n")
    run = UnfinishedRun(tmp_path / "run")
    run.begin(lambda path: path.touch(), table)
    run.check_table(table)
    table.write_text("a,y\n1,3\n")
    with pytest.raises(UsageError, match=r"table.csv has changed since the run began: its SHA-256"):
        run.check_table(table)


def test_runs_without_a_table_or_a_record_of_it_go_on(tmp_path: Path) -> None:
    run = begin(tmp_path, "first")
    run.check_table(None)
    run.check_table(tmp_path / "table.csv")
