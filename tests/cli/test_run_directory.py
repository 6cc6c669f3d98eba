"""Where a run goes, what describes it, and that nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import content

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import (
    RunDescription,
    check_apart,
    choose_directory,
    release_directory,
    write_run,
)

RUN = RunDescription(
    feature_names=("a", "b"),
    target_name="y",
    task="regression",
    classes=None,
    inputs={"mean": [1.0, 2.0], "scale": [0.1, 10.0]},
    target={"mean": [3.0], "scale": [4.0]},
    options={"depth": 2},
    versions={"gpflow": "2"},
)
LABELS = replace(RUN, task="classification", classes=("no", "yes"), target=None)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_run(directory: Path, note: str = "first") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    RUN.write(directory)
    (directory / "metrics.json").write_text(note)
    return directory


@pytest.mark.parametrize("run", [RUN, LABELS], ids=["regression", "classification"])
def test_description_is_read_as_it_was_written(run: RunDescription) -> None:
    run.write(Path())
    assert RunDescription.read(Path()) == run


def test_inputs_are_standardised() -> None:
    np.testing.assert_allclose(RUN.standardise_inputs(np.array([[1.1, 12.0]])), [[1.0, 1.0]])


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, feature_names=("a",)),
        replace(RUN, inputs={"mean": [1.0, 2.0], "scale": [0.1, -10.0]}),
        replace(RUN, target=None),
        replace(RUN, target={"mean": [3.0, 3.0], "scale": [4.0, 4.0]}),
        replace(RUN, classes=("no", "yes")),
        replace(LABELS, classes=None),
        replace(LABELS, target=RUN.target),
    ],
)
def test_descriptions_that_contradict_themselves_are_damaged(run: RunDescription) -> None:
    run.write(Path())
    with pytest.raises(UsageError, match=r"^run.json is damaged: "):
        RunDescription.read(Path())


def test_a_directory_without_description_is_no_run() -> None:
    with pytest.raises(UsageError, match="has no run.json"):
        RunDescription.read(Path())


def test_next_free_number_is_taken_and_made() -> None:
    for number in (1, 2):
        chosen = choose_directory(None, Path("data/houses.csv"), overwrite=False)
        assert chosen == Path("runs") / f"houses-{number}" and chosen.is_dir()
    release_directory(Path("runs/houses-1"))
    assert choose_directory(None, Path("houses.csv"), overwrite=False).name == "houses-1"
    assert choose_directory(None, None, overwrite=False) == Path("runs/diabetes-1")


def test_a_directory_of_ones_own_is_made_with_its_parents() -> None:
    assert choose_directory(Path("x/y"), None, overwrite=False) == Path("x/y")
    assert Path("x/y").is_dir()


def test_an_empty_directory_can_be_used() -> None:
    Path("x").mkdir()
    assert choose_directory(Path("x"), None, overwrite=False) == Path("x")


def test_a_run_needs_leave_to_be_replaced() -> None:
    a_run(Path("x"))
    with pytest.raises(UsageError, match="x holds another run; give --overwrite"):
        choose_directory(Path("x"), None, overwrite=False)
    assert choose_directory(Path("x"), None, overwrite=True) == Path("x")


def test_a_run_of_another_version_can_be_replaced() -> None:
    Path("x").mkdir()
    Path("x/run.json").write_text('{"format": "gpflow_dwp.run", "format_version": 99}')
    assert choose_directory(Path("x"), None, overwrite=True) == Path("x")


def test_release_keeps_what_is_not_empty() -> None:
    release_directory(a_run(Path("x")))
    release_directory(Path("absent"))
    assert (Path("x") / "metrics.json").read_text() == "first"


def test_write_replaces_and_does_not_mix() -> None:
    (a_run(Path("x")) / "history.csv").write_text("old")
    for name in ("figures", "unfinished", ".unfinished.replaced"):
        (Path("x") / name).mkdir()
    write_run(Path("x"), lambda path: a_run(path, "second") and None)
    assert sorted(content(Path())) == ["x/metrics.json", "x/run.json"]
    assert Path("x/metrics.json").read_text() == "second"
    assert len(list(Path("x").iterdir())) == 2 and len(list(Path().iterdir())) == 1


def test_what_is_not_of_the_run_stays() -> None:
    (a_run(Path("x")) / "tables").mkdir()
    Path("x/tables/d.csv").write_text("a,y")
    Path("x/log.csv").write_text("step")
    before = content(Path())
    write_run(Path("x"), lambda path: a_run(path) and None)
    assert content(Path()) == before


def test_what_is_not_of_the_run_stays_where_moving_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (a_run(Path("x")) / "notes.txt").write_text("mine")

    def fail(self: Path, target: Path) -> None:
        raise OSError("no power")

    rename = Path.rename
    for name in ("x", ".x.partial", "notes.txt"):
        with monkeypatch.context() as patch:
            patch.setattr(
                Path,
                "rename",
                lambda self, to, n=name: (fail if self.name == n else rename)(self, to),
            )
            with pytest.raises(OSError, match="no power"):
                write_run(Path("x"), lambda path: a_run(path, "second") and None)
        assert choose_directory(Path("x"), None, overwrite=True) == Path("x")
        assert Path("x/notes.txt").read_text() == "mine"
    assert Path("x/metrics.json").read_text() == "second"


def test_a_file_of_the_users_is_never_replaced_by_another() -> None:
    for name in ("x", ".x.replaced"):
        (a_run(Path(name)) / "notes.txt").write_text(name)
    before = content(Path())
    with pytest.raises(UsageError, match=r"replaced/notes.txt would replace another in .*/x; move"):
        choose_directory(Path("x"), None, overwrite=True)
    assert content(Path()) == before


@pytest.mark.parametrize("name", ["history.csv", "figures/log.csv", "unfinished/log.csv"])
def test_a_file_of_the_users_has_a_place_of_its_own(name: str) -> None:
    message = f"--log x/{name} is among the files that a run itself has in x; choose another"
    with pytest.raises(UsageError, match=message):
        check_apart("--log", Path("x", name), Path("x"))
    for path in (None, Path("x/log.csv"), Path(name), Path("x/data") / name):
        check_apart("--log", path, Path("x"))


def test_write_makes_parents() -> None:
    write_run(Path("deep/down/x"), lambda path: a_run(path) and None)
    assert sorted(content(Path())) == ["deep/down/x/metrics.json", "deep/down/x/run.json"]


def test_a_failure_leaves_the_old_run_whole() -> None:
    before = content(a_run(Path("x")))

    def fail(path: Path) -> None:
        a_run(path, "second")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_run(Path("x"), fail)
    assert content(Path("x")) == before
    write_run(Path("x"), lambda path: a_run(path, "third") and None)
    assert sorted(content(Path())) == ["x/metrics.json", "x/run.json"]


def test_a_link_stays_and_leads_to_the_new_run() -> None:
    a_run(Path("disk/x"))
    Path("x").symlink_to("disk/x", target_is_directory=True)
    write_run(Path("x"), lambda path: a_run(path, "second") and None)
    assert Path("x").is_symlink() and Path("disk/x/metrics.json").read_text() == "second"
    assert [path.name for path in Path("disk").iterdir()] == ["x"]
