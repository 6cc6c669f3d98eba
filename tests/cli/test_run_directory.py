"""Where a run goes, who may write there, what goes on, and that a killed process loses nothing."""

from __future__ import annotations

import shutil
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import content
from crashes import crashes

from gpflow_dwp.cli import run_directory
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import (
    UnfinishedRun,
    hold_directory,
    holds_run,
    read_run,
    resume_directory,
    write_run,
)

RUN = '{"format": "gpflow_dwp.run", "note": "%s"}'
X = Path("x")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_run(directory: Path, note: str = "first") -> Path:
    """Some files of a run, all of which say the same."""
    (directory / "model").mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(RUN % note)
    for name in ("metrics.json", "model/model.json"):
        (directory / name).write_text(note)
    return directory


def write(note: str, directory: Path = X) -> None:
    """Replace what a directory holds, as ``fit`` does."""
    with hold_directory(directory, None, overwrite=True):
        write_run(directory, lambda path: a_run(path, note) and None)


def notes(folder: Path) -> set[str]:
    """What the files of a run say; nothing where there is none."""
    texts = [folder / name for name in ("run.json", "metrics.json", "model/model.json")]
    if not texts[0].exists():
        return set()
    return {path.read_text().partition('"note": "')[2][:-2] or path.read_text() for path in texts}


def choose(wanted: Path | None, table: Path | None = None, *, overwrite: bool = False) -> Path:
    with hold_directory(wanted, table, overwrite=overwrite) as directory:
        return directory


def test_next_free_number_is_taken_and_made() -> None:
    with ExitStack() as stack:
        for number in (1, 2):
            holding = hold_directory(None, Path("data/houses.csv"), overwrite=False)
            chosen = stack.enter_context(holding)
            assert chosen == Path("runs") / f"houses-{number}" and chosen.is_dir()
    assert choose(None, Path("houses.csv")).name == "houses-1"
    assert choose(None) == Path("runs/yacht-1")


def test_a_directory_is_made_with_its_parents_and_removed_if_it_stays_empty() -> None:
    with hold_directory(Path("x/y"), None, overwrite=False) as directory:
        assert directory == Path("x/y") and directory.is_dir()
    assert not directory.exists()


def test_a_run_needs_leave_to_be_replaced() -> None:
    a_run(X)
    with pytest.raises(UsageError, match="x holds another run; give --overwrite"):
        choose(X)
    assert choose(X, overwrite=True) == X
    assert notes(X) == {"first"}


def test_write_replaces_and_does_not_mix() -> None:
    a_run(X)
    (X / "history.csv").write_text("old")
    (X / "figures").mkdir()
    (X / "unfinished-2").mkdir()
    write("second")
    assert sorted(content(Path())) == ["x/metrics.json", "x/model/model.json", "x/run.json"]
    assert notes(X) == {"second"} and len(list(X.iterdir())) == 3


def test_a_failure_leaves_the_old_run_whole() -> None:
    before = content(a_run(X))

    def fail(path: Path) -> None:
        a_run(path, "second")
        raise OSError("disk full")

    with (
        pytest.raises(OSError, match="disk full"),
        hold_directory(X, None, overwrite=True),
    ):
        write_run(X, fail)
    assert content(X) == before


def test_a_link_stays_and_leads_to_the_new_run() -> None:
    a_run(Path("disk/x"))
    X.symlink_to("disk/x", target_is_directory=True)
    write("second")
    assert X.is_symlink() and notes(Path("disk/x")) == {"second"}
    assert [path.name for path in Path("disk").iterdir()] == ["x"]


def prepare(*, old: bool = True) -> None:
    shutil.rmtree(X, ignore_errors=True)
    if old:
        a_run(X)
    (X / "tables").mkdir(parents=True)
    (X / "tables/d.csv").write_text("mine")
    UnfinishedRun.begin(X, lambda path: path.write_text("of the old") and None)


@pytest.mark.parametrize("old", [True, False])
def test_whenever_it_is_killed_the_old_run_or_the_new_one_is_there(old: bool) -> None:
    seen = []
    for _ in crashes(lambda: write("second"), lambda: prepare(old=old)):
        with read_run(X) as folder:
            found = notes(folder)
        assert found in ({"first"}, {"second"}, *([] if old else [set()])), content(X)
        assert (UnfinishedRun.latest(X) is None) == (found == {"second"})
        assert (X / "tables/d.csv").read_text() == "mine"
        seen.append(found)
        assert choose(X, overwrite=True) == X  # which clears away what is left
        assert not list(X.glob(".*")) and (not found or notes(X) == found)
    assert len(seen) > 20 and {"second"} in seen


def test_what_is_killed_while_it_makes_up_for_a_crash_is_made_up_for() -> None:
    def crash() -> None:
        prepare()
        (X / "metrics.json").unlink()
        a_run(X / ".run.whole", "second")

    def look() -> None:
        with read_run(X) as folder:
            assert notes(folder) == {"second"}

    for _ in crashes(look, crash):
        look()
        assert notes(X) == {"second"} and (X / "tables/d.csv").is_file()


def test_a_run_that_was_cut_off_is_read_where_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_run(a_run(X) / ".run.whole", "second")

    def fail(*_: object) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(run_directory, "copy_tree", fail)
    with read_run(X) as folder:
        assert notes(folder) == {"second"}


def test_two_cannot_work_in_one_directory() -> None:
    prepare()
    with hold_directory(X, None, overwrite=True):
        for other in (hold_directory(X, None, overwrite=True), resume_directory(X)):
            with pytest.raises(UsageError, match="^x is in use by another gpflow-dwp fit$"), other:
                pass
        with read_run(X) as folder:  # what was there before can be read meanwhile
            assert notes(folder) == {"first"}
    with resume_directory(X) as unfinished:
        assert unfinished.configuration.read_text() == "of the old"


def test_a_run_is_not_replaced_while_it_is_read() -> None:
    a_run(X)
    writer = threading.Thread(target=write, args=["second"])
    with read_run(X) as folder:
        writer.start()
        writer.join(0.2)
        assert notes(folder) == {"first"} and writer.is_alive()
    writer.join()
    assert notes(X) == {"second"}


def test_a_lock_that_nobody_holds_goes() -> None:
    (a_run(X) / ".run.lock").touch()
    with read_run(X):
        assert not (X / ".run.lock").exists()
    with hold_directory(X, None, overwrite=True):
        with read_run(X):
            pass
        assert (X / ".run.lock").exists()


def test_a_folder_of_the_users_is_not_taken_for_a_run() -> None:
    (X / "unfinished").mkdir(parents=True)
    (X / "unfinished/novel.txt").write_text("mine")
    assert not holds_run(X)
    with pytest.raises(UsageError, match="something that is not a run"):
        choose(X, overwrite=True)


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
