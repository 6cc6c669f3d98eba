"""``gpflow-dwp study`` and ``study-report``: options, refusals, exit codes, what is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import declared_options, run
from study_archive import write_archive
from study_results import invented_study

from gpflow_dwp.lab.study._models import STUDY_MODELS
from gpflow_dwp.lab.study.cell import STUDY_PROTOCOLS, Cell
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results

RUN = "gpflow_dwp.lab.study.runner.run_cells"
OUT = ["--out", "study"]
NEEDED = ["--datasets", "yacht", *OUT]


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["0-4"], [0, 1, 2, 3, 4]), (["0", "3", "7"], [0, 3, 7]), (["0-2,5", "1"], [0, 1, 2, 5])],
)
def test_numbers_of_splits(
    words: list[str], expected: list[int], asked: list[dict[str, Any]]
) -> None:
    assert run("study", *NEEDED, "--models", "GW", "--splits", *words) == 0

    assert sorted({cell.split for cell in asked[0]["cells"]}) == expected


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """What studies are asked for, in an empty directory; cells finish without being run."""
    calls: list[dict[str, Any]] = []

    def finish(cells: list[Cell], directory: Path, **arguments: Any) -> list[Record]:
        calls.append({"cells": cells, "directory": directory, **arguments})
        return [Record(c.key, c.to_dict(), "finished", None, {}, {}) for c in cells]

    monkeypatch.setattr(RUN, finish)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPFLOW_DWP_UCI", str(write_archive(tmp_path / "archive", splits=8)))
    return calls


def test_json_has_null_for_what_is_no_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches NaN, which is no JSON, of a cell that has diverged."""
    monkeypatch.setenv("GPFLOW_DWP_UCI", str(write_archive(tmp_path / "archive")))
    diverged = Record("key", {}, "finished", None, {"elbo": float("nan")}, {})
    monkeypatch.setattr(RUN, lambda *_, **__: [diverged])

    assert run("study", "--datasets", "yacht", "--out", tmp_path / "study", "--json") == 0
    (cell,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["cells"]
    assert cell["metrics"] == {"elbo": None}


def test_cells_that_are_asked_for(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "study",
        *NEEDED,
        *("--depths", "2", "3", "--models", "GW", "A", "--splits", "1", "--steps", "50"),
        *("--num-inducing", "7", "--batch-size", "9", "--dtype", "float32", "--seed", "4"),
        *("--set", "jitter=1e-5", "latent_dim=2", "--jobs", "3", "--threads", "2"),
        *("--importance-samples", "5"),
        *("--retry-failed", "--quiet", "--uci-folder", "archive"),
    )

    assert code == 0
    options = (("jitter", 1e-5), ("latent_dim", 2))
    (call,) = asked
    assert call.pop("cells") == [
        Cell(
            "yacht",
            depth,
            model,
            1,
            50,
            9,
            7,
            dtype="float32",
            seed=4,
            options=options,
            num_importance_samples=5,
        )
        for depth in (2, 3)
        for model in ("GW", "A")
    ]
    write_options = call.pop("on_start")
    Path("study").mkdir()
    write_options()
    assert "num_inducing: 7" in Path("study", "config.yaml").read_text()
    assert call == {
        "directory": Path("study"),
        "jobs": 3,
        "ray": None,
        "gpus": 0.0,
        "threads": 2,
        "uci_folder": Path("archive"),
        "progress": False,
        "retry_failed": True,
    }
    assert capsys.readouterr().out == "4 of 4 cells are in study\n"


@pytest.mark.parametrize(
    ("words", "ray", "gpus"),
    [
        (["--ray"], "local", 0.0),
        (["--ray", "--jobs", "2"], "local", 0.0),
        (["--gpus-per-cell", "0.25", "--ray", "first:6379"], "first:6379", 0.25),
        (["--config", "options.yaml"], "auto", 0.0),
    ],
)
def test_ray_is_local_or_at_an_address(
    words: list[str], ray: str, gpus: float, asked: list[dict[str, Any]]
) -> None:
    """An option after --ray must not be taken for its address."""
    Path("options.yaml").write_text("ray: auto")

    assert run("study", *NEEDED, "--models", "GW", *words) == 0

    assert (asked[0]["ray"], asked[0]["gpus"]) == (ray, gpus)
    Path("study").mkdir()
    asked[0]["on_start"]()
    assert "ray" not in Path("study", "config.yaml").read_text()  # where it runs is told anew


def test_what_ray_cannot_do_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive(tmp_path / "archive")
    command = ["study", "--datasets", "yacht", "--models", "GW", "--uci-folder", archive]
    command += ["--out", tmp_path / "study"]
    for words, message in (
        (["--gpus-per-cell", "0"], "--gpus-per-cell: must be a positive number, got '0'"),
        (["--gpus-per-cell", "1"], "gpus are shared out by ray, got 1.0 without it"),
        (["--ray", "a", "b"], "--ray"),
        (["--ray"], 'pip install "gpflow-dwp[ray]"'),
    ):
        monkeypatch.setitem(sys.modules, "ray", None)
        assert run(*command, *words) == 2
        error = capsys.readouterr().err
        assert message in error and len(error.splitlines()) == 1
    assert not (tmp_path / "study").exists()


def test_every_model_and_protocol_of_studies_can_be_asked_for() -> None:
    options = {option.name: option for command, option in declared_options() if command == "study"}
    assert options["--models"].get_choices() == tuple(STUDY_MODELS)
    assert options["--protocol"].get_choices() == STUDY_PROTOCOLS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "yaht"], "dataset must be one of boston,"),
        (["--datasets", "yacht", "yacht"], "datasets must hold each"),
        (["--datasets", "boston"], "bostonHousing"),
        (["--splits", "0-20"], "split must be an integer from 0 to 19 for yacht, got 20"),
        (["--uci-folder", "absent"], "absent"),
        (["--set", "colour=1"], "the builder of model GW takes no 'colour'"),
        (
            ["--set", "jitter=1e-8", "jitter=1e-6"],
            "--set: must give each name once, got jitter twice",
        ),
        (["--set", "likelihood=5"], "likelihood must be one of GPflow's kind or None, got 5"),
        (["--out", "file"], "file is a file; --out takes a directory"),
    ],
)
def test_refusals_before_anything_is_run(
    arguments: list[str],
    message: str,
    asked: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("file").touch()

    needed = OUT if "--datasets" in arguments else NEEDED
    assert run("study", *needed, "--models", "GW", *arguments) == 2

    output, error = capsys.readouterr()
    assert output == "" and len(error.splitlines()) == 1
    assert error.startswith("gpflow-dwp study: error: ") and message in error
    assert not asked and not Path("study").exists()


def test_failed_cells_are_told(
    asked: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(cells: list[Cell], *_: Any, **__: Any) -> list[Record]:
        return [Record(c.key, c.to_dict(), "failed", "ValueError: no", None, {}) for c in cells]

    monkeypatch.setattr(RUN, fail)

    assert run("study", *NEEDED, "--models", "GW") == 1

    output, error = capsys.readouterr()
    assert output == "0 of 1 cells are in study\n"
    assert error == (
        f"gpflow-dwp study: 1 cells failed; {Path('study') / RESULTS} says why, and --retry-failed "
        "runs them again\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted; finished cells are in study, and the same"),
        (BlockingIOError("study is in use"), 2, "error: study is in use"),
    ],
)
def test_ends_of_a_study(
    error: BaseException,
    code: int,
    message: str,
    asked: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(RUN, end)

    assert run("study", *NEEDED, "--models", "GW") == code
    assert f"gpflow-dwp study: {message}" in capsys.readouterr().err


def write_study(directory: Path, records: list[Record]) -> Path:
    directory.mkdir()
    for record in records:
        append_record(directory / RESULTS, record)
    return directory


@pytest.mark.usefixtures("undrawn")
def test_report_of_several_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = invented_study()
    first = write_study(tmp_path / "first", records[:5])
    second = write_study(tmp_path / "second", records[5:])

    assert run("study-report", first, second) == 0

    output = capsys.readouterr().out
    text = (first / "report" / "report.txt").read_text()
    assert output == f"{text}\nTables and figures are in {first / 'report'}\n"
    assert list((first / "report").glob("*.csv")) and list((first / "report").glob("*.png"))
    assert read_results(first) == records[:5]


@pytest.mark.usefixtures("undrawn")
def test_report_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", invented_study())

    assert run("study-report", study / RESULTS, "--out", tmp_path / "a" / "b") == 0

    assert (tmp_path / "a" / "b" / "report.txt").is_file()
    assert not (study / "report").exists()


def test_report_without_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("study-report", tmp_path) == 2

    output, error = capsys.readouterr()
    assert output == ""
    assert error == f"gpflow-dwp study-report: error: {tmp_path / RESULTS}: no such results file\n"
    assert not list(tmp_path.iterdir())
