"""Where a run goes, who may write there, what goes on, and that a killed process loses nothing."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import content
from crashes import crashes

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import Run, holds_run, new_run, resume_run

RUN = '{"format": "gpflow_dwp.run", "note": "%s"}'
X = Path("x")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_run(directory: Path, note: str = "first") -> Path:
    """Some files of a run, all of which say the same."""
    (directory / "model").mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(RUN % note)
    for name in ("metrics.json", "config.yaml", "model/model.zip"):
        (directory / name).write_text(note)
    return directory


def begin(note: str = "second", *, overwrite: bool = True) -> None:
    """What a process leaves that is killed after a step."""
    with new_run(X, "x", overwrite=overwrite) as run:
        (run.work / "config.yaml").write_text(note)
        run.state.mkdir()
        (run.state / "save-1").write_text(note)


def write(note: str, *, keep_state: bool = False) -> None:
    """Replace what a directory holds, as ``fit`` does."""
    with new_run(X, "x", overwrite=True) as run:
        run.state.mkdir()
        (run.state / "save-1").write_text(note)
        a_run(run.work, note)
        run.finish(keep_state=keep_state)


def notes(folder: Path) -> set[str]:
    """What the files of a run say; nothing where there is none."""
    if not (folder / "run.json").exists():
        return set()
    texts = {path.read_text() for path in [folder / "metrics.json", folder / "model/model.zip"]}
    return texts | {(folder / "run.json").read_text().partition('"note": "')[2][:-2]}


def test_next_free_number_is_taken() -> None:
    """Would catch two runs that begin at once and share a folder."""
    with ExitStack() as stack:
        for number in (1, 2):
            run = stack.enter_context(new_run(None, "houses", overwrite=False))
            assert run.directory == Path("runs") / f"houses-{number}" and run.work.is_dir()
    a_run(Path("runs/yacht-1"))
    with new_run(None, "yacht", overwrite=False) as run:
        assert run.directory == Path("runs/yacht-2")


def test_a_run_needs_leave_to_be_replaced() -> None:
    """Would catch a run that is lost without --overwrite, finished or not."""
    a_run(X)
    with pytest.raises(UsageError, match="x holds another run; give --overwrite"):
        begin(overwrite=False)
    shutil.rmtree(X)
    begin()
    with pytest.raises(UsageError, match="x holds an unfinished run; go on with it by --resume"):
        begin(overwrite=False)
    assert Run(X).configuration.read_text() == "second"


def test_what_is_no_run_is_never_replaced() -> None:
    """Would catch files of the user's that go with the directory, or a directory they stand in."""
    a_run(X)
    (X / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"x holds something that is not a run \(notes.txt\)"):
        write("second")
    with pytest.raises(UsageError, match="is where you are"), new_run(Path(), "", overwrite=True):
        pass
    with pytest.raises(UsageError, match="a mount point"), new_run(Path("/proc"), "", overwrite=1):
        pass


def test_write_replaces_and_does_not_mix() -> None:
    """Would catch files of the old run among those of the new one."""
    a_run(X)
    (X / "history.csv").write_text("old")
    write("second")
    assert notes(X) == {"second"} and not (X / "history.csv").exists()
    assert [path.name for path in Path().iterdir()] == ["x"] and not (X / "state").exists()


def test_a_link_stays_and_leads_to_the_new_run() -> None:
    """Would catch a link that is replaced by a folder."""
    a_run(Path("disk/x"))
    X.symlink_to("disk/x", target_is_directory=True)
    write("second")
    assert X.is_symlink() and notes(Path("disk/x")) == {"second"}
    assert [path.name for path in Path("disk").iterdir()] == ["x"]


@pytest.mark.parametrize("old", [True, False])
def test_whenever_it_is_killed_the_old_run_or_the_new_one_is_whole(old: bool) -> None:
    """Would catch a moment in which a kill leaves neither, or a mixture."""

    def prepare() -> None:
        for folder in Path().iterdir():
            shutil.rmtree(folder)
        if old:
            a_run(X)

    seen = []
    for _ in crashes(lambda: write("second"), prepare):
        found = notes(Run(X).folder)
        assert found in ({"first"}, {"second"}, *([] if old else [set()])), content(Path())
        seen.append(found)
        with new_run(X, "x", overwrite=True):  # which clears away what is left
            assert notes(X) == found
    assert len(seen) > 8 and {"second"} in seen


def test_whenever_it_is_killed_as_it_goes_on_it_can_go_on() -> None:
    """Would catch steps that are lost while they are taken from a finished run."""

    def prepare() -> None:
        for folder in Path().iterdir():
            shutil.rmtree(folder)
        write("first", keep_state=True)

    def act() -> None:
        with resume_run(X) as run:
            assert (run.state / "save-1").read_text() == "first"

    for _ in crashes(act, prepare):
        assert Run(X).can_go_on and notes(X) == {"first"}
        act()


def test_two_cannot_work_in_one_directory() -> None:
    """Would catch two processes that write one run."""
    begin()
    with resume_run(X):
        for other in (new_run(X, "x", overwrite=True), resume_run(X)):
            with pytest.raises(UsageError, match="^x is in use by another gpflow-dwp fit$"), other:
                pass


def test_what_cannot_go_on_is_refused() -> None:
    """Would catch a training that begins anew where the user means to go on."""
    a_run(X)
    with pytest.raises(UsageError, match="x holds no run that could go on"), resume_run(X):
        pass
    assert holds_run(X) and not holds_run(Path()) and not Run(X).can_go_on
