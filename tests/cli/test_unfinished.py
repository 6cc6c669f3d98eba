"""An unfinished run: begun, replaced by another, brought back, and tied to its table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from crashes import crashes

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.unfinished import UnfinishedRun


def begin(
    directory: Path, note: str, *, steps: bool = True, log: Path | None = None
) -> UnfinishedRun:
    run = UnfinishedRun.begin(directory, lambda path: path.write_text(note) and None, log=log)
    if steps:
        run.state.mkdir()
        (run.state / "save-1").write_text(note)
    return run


def test_what_is_replaced_comes_back_when_the_new_one_is_discarded(tmp_path: Path) -> None:
    runs = [begin(tmp_path, note) for note in ("first", "second", "third")]
    for run, note in zip(reversed(runs), ("third", "second", "first"), strict=True):
        assert UnfinishedRun.find(tmp_path) == run
        assert (run.state / "save-1").read_text() == run.configuration.read_text() == note
        run.discard(None)
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_steps_is_not_kept(tmp_path: Path) -> None:
    begin(tmp_path, "first")
    begin(tmp_path, "second", steps=False)
    begin(tmp_path, "third").discard(None)
    assert UnfinishedRun.find(tmp_path).configuration.read_text() == "first"


def test_a_log_comes_back(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("of the finished run")
    begin(tmp_path, "killed before its first step", steps=False, log=log)
    log.write_text("begun")
    run = begin(tmp_path, "fails", log=log)
    log.write_text("begun again")
    run.discard(log)
    assert log.read_text() == "of the finished run"
    assert list(tmp_path.iterdir()) == [log]


def test_options_that_cannot_be_written_leave_the_old_run(tmp_path: Path) -> None:
    run = begin(tmp_path, "first")

    def fail(path: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        UnfinishedRun.begin(tmp_path, fail)
    assert run.has_steps and [path.name for path in tmp_path.iterdir()] == ["unfinished"]


def test_whenever_it_is_killed_one_run_can_go_on(tmp_path: Path) -> None:
    folder, log = tmp_path / "x", tmp_path / "x/log.csv"

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        log.write_text("old")
        begin(folder, "first")

    def act() -> None:
        begin(folder, "second", log=log).discard(log)

    found = []
    for _ in crashes(act, prepare):
        found.append(UnfinishedRun.find(folder).configuration.read_text())
        assert log.read_text() == "old"
    assert set(found) == {"first", "second"} and found[0] == found[-1] == "first"


def test_a_table_that_has_changed_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n1,2\n")
    run = UnfinishedRun.begin(tmp_path, lambda path: path.touch(), table)
    run.check_table(table)
    run.check_table(None)
    table.write_text("a,y\n1,3\n")
    with pytest.raises(UsageError, match=r"table.csv has changed since the run began: its SHA-256"):
        run.check_table(table)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.yaml", "config.yaml is not as it was when the run began"),
        ("begun.json", "begun.json is damaged"),
    ],
)
def test_options_that_were_edited_are_refused(tmp_path: Path, name: str, message: str) -> None:
    path = begin(tmp_path, "depth: 3").folder / name
    path.write_text(path.read_text().replace("3", "2"))
    with pytest.raises(UsageError, match=message):
        UnfinishedRun.find(tmp_path)
