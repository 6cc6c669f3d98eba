"""Where a run goes, who may write there, and that a killed process loses nothing."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import content
from faults.states import each_end

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.runs import Run, TrainedRun, check_place, new_run
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.files import seal

X = Path("x")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_run(directory: Path, note: str = "first") -> Path:
    """Some files of a run, all of which say the same."""
    (directory / "model").mkdir(parents=True, exist_ok=True)
    for name in ("run.json", "metrics.json", "config.yaml", "model/model.zip"):
        (directory / name).write_text(note)
    return directory


def begin(note: str = "second", *, overwrite: bool = True) -> None:
    """What a process leaves that is killed after a step."""
    with new_run(X, "x", overwrite=overwrite) as run:
        (run.work / "config.yaml").write_text(note)
        run.state.mkdir()
        (run.state / "save-1").write_text(note)


def write(note: str) -> None:
    """Replace what a directory holds, as ``fit`` does."""
    with new_run(X, "x", overwrite=True) as run:
        run.state.mkdir()
        (run.state / "save-1").write_text(note)
        a_run(run.work, note)
        run.finish()


def notes(folder: Path) -> set[str]:
    """What the files of a run say; nothing where there is none."""
    if not (folder / "run.json").exists():
        return set()
    return {(folder / name).read_text() for name in ("run.json", "metrics.json", "config.yaml")}


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
    assert (Run(X).work / "config.yaml").read_text() == "second" and Run(X).has_steps


def test_what_is_no_run_is_never_replaced() -> None:
    """Would catch files of the user's that go with the directory, or a run within another."""
    a_run(X)
    (X / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"x holds something that is not a run \(notes.txt\)"):
        write("second")
    for place, message in ((Path(), "is where you are"), (X / "inner", "which holds a run")):
        with pytest.raises(UsageError, match=message), new_run(place, "", overwrite=True):
            pass


def test_write_replaces_and_does_not_mix() -> None:
    """Would catch files of the old run among those of the new one, and a link that is replaced."""
    a_run(Path("disk/x"))
    (Path("disk/x") / "history.csv").write_text("old")
    X.symlink_to("disk/x", target_is_directory=True)
    write("second")
    assert X.is_symlink() and notes(Path("disk/x")) == {"second"}
    assert not (X / "history.csv").exists() and not (X / "state").exists()
    assert [path.name for path in Path("disk").iterdir()] == ["x"]


@pytest.mark.parametrize("old", [True, False])
def test_whenever_it_is_killed_the_old_run_or_the_new_one_is_whole(old: bool) -> None:
    """Would catch a moment in which a kill leaves neither, or a mixture."""
    if old:
        a_run(X)
    seen = []
    for _ in each_end(lambda: write("second"), Path.cwd()):
        found = notes(Run(X).folder)
        assert found in ({"first"}, {"second"}, *([] if old else [set()])), content(Path())
        seen.append(found)
        with new_run(X, "x", overwrite=True):  # which clears away what is left
            assert notes(X) == found
    assert len(seen) > 8 and {"second"} in seen


def test_two_cannot_work_in_one_directory() -> None:
    """Would catch two processes that write one run."""
    begin()
    with Run(X).hold():
        for other in (new_run(X, "x", overwrite=True), Run(X).hold()):
            with pytest.raises(UsageError, match="^x is in use by another gpflow-dwp fit$"), other:
                pass


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("run/run.json", "run, which holds a run"),
        ("run/figures/../new.csv", "run, which holds a run"),
        ("link/x.csv", "run, which holds a run"),
        ("run/model/x.csv", "which holds a run or a model"),
        ("hard.csv", "hard.csv is the table that is read"),
        ("/dev/null", "/dev/null is there already, and no file"),
        ("old.csv", "old.csv exists; give --overwrite to replace it"),
        ("t.csv/x.csv", "t.csv is not a directory"),
    ],
)
def test_places_of_predictions_that_are_refused(place: str, message: str) -> None:
    """Would catch a file of the user's, or of a run, that predictions are written over."""
    a_run(Path("run"))
    Path("t.csv").touch()
    Path("old.csv").touch()
    Path("hard.csv").hardlink_to("t.csv")
    Path("link").symlink_to("run", target_is_directory=True)
    with pytest.raises(UsageError, match=message):
        check_place(Path(place), Path("t.csv"), overwrite=place != "old.csv")
    check_place(Path("new.csv"), Path("t.csv"), overwrite=False)


ENCODER = ColumnEncoder(("a", "town"), {"town": ("Bath", "York")}, {"a": 1.5})
INPUTS, TARGET = Standardiser([1.0, 2.0, 0.5], [0.1, 10.0, 1.0]), Standardiser([3.0], [4.0])
OTHERS = {"options": {"depth": 2}, "versions": {"gpflow": "2"}, "model": {}}
RUN = TrainedRun(ENCODER, "y", None, INPUTS, TARGET, **OTHERS)
LABELS = TrainedRun(ENCODER, "y", ("no", "yes"), INPUTS, None, **OTHERS)


def read() -> TrainedRun:
    with user_mistakes():
        return TrainedRun.read(Path())


@pytest.mark.parametrize("run", [RUN, LABELS], ids=["regression", "classification"])
def test_description_is_read_as_it_was_written(run: TrainedRun) -> None:
    """Would catch a field that is lost, or tuples that are lists."""
    run.write(Path())
    again = read()
    assert (again.encoder, again.target_name, again.classes, again.options) == (
        *(ENCODER, "y", run.classes, run.options),
    )
    assert again.inputs.to_dict() == INPUTS.to_dict() and (again.target is None) == (run is LABELS)


def test_no_flipped_digit_is_read() -> None:
    """Would catch a damaged description that predictions are made by."""
    RUN.write(Path())
    text = Path("run.json").read_text()
    for place in [place for place, character in enumerate(text) if character.isdigit()]:
        flipped = "7" if text[place] != "7" else "8"
        Path("run.json").write_text(text[:place] + flipped + text[place + 1 :])
        with pytest.raises(UsageError, match=r"^run.json is damaged"):
            read()


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 5000, '{"format": "gpflow_dwp.run"}'])
def test_what_is_no_description_is_damaged(text: str) -> None:
    """Would catch an error that names no file; one of another version says so."""
    Path("run.json").write_text(text)
    with pytest.raises(UsageError, match=r"^run.json is damaged: "):
        read()
    Path("run.json").write_text(json.dumps(seal({"format": "gpflow_dwp.run", "format_version": 2})))
    with pytest.raises(UsageError, match="was not written by this version"):
        read()
