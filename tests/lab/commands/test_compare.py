"""``gpflow-dwp compare``: options, refusals, exit codes, what is printed and written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from comparison_results import compared

from gpflow_dwp.lab.comparison.cell import ComparisonCell
from gpflow_dwp.lab.study.frame import results_frame
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results

RUN = "gpflow_dwp.lab.study.runner.run_cells"
NEEDED = ["--out", "there", "--tables", "wine", "--models", "svc"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """What is asked for, in an empty directory; cells of split 7 fail, others finish at once."""
    calls: list[dict[str, Any]] = []

    def finish(cells: list[ComparisonCell], directory: Path, **arguments: Any) -> list[Record]:
        calls.append({"cells": cells, "directory": directory, **arguments})
        directory.mkdir(exist_ok=True)
        arguments["on_start"]()
        records = []
        for cell in cells:
            (record,) = compared(cell.table, cell.label, [1.0], first_split=cell.split)
            record = replace(record, key=cell.key, cell=cell.to_dict())
            if cell.split == 7:
                record = replace(record, status="failed", metrics=None, error="ValueError: no")
            append_record(directory / RESULTS, record)
            records.append(record)
        return records

    monkeypatch.setattr(RUN, finish)
    monkeypatch.chdir(tmp_path)
    return calls


def test_what_is_asked_for_is_run_and_reported(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--set", "depth=2", "num_steps=9", "--label", "quick"]
    arguments = [*NEEDED, "hist-gb", "dwp", "--splits", "5-6", "--jobs", "2", "--quiet", *own]

    assert run("compare", *arguments) == 0

    (call,) = asked
    assert (call["jobs"], call["progress"], call["directory"]) == (2, False, Path("there"))
    labels = [(cell.split, cell.label) for cell in call["cells"]]
    assert labels == [(split, name) for split in (5, 6) for name in ("svc", "hist-gb", "quick")]
    assert call["cells"][2].settings == (("depth", 2), ("num_steps", 9))
    output = capsys.readouterr().out
    assert "# Comparison, splits 5-6" in output and output.endswith("6 of 6 cells are in there\n")
    assert {path.name for path in Path("there").iterdir()} == {
        *(RESULTS, "config.yaml", "report-5-6.md", "scores-5-6.csv", "relative-5-6.png"),
    }


def test_the_report_is_of_all_models_of_the_directory(asked: list[dict[str, Any]]) -> None:
    """So that one label after the other is set beside rivals that were run once."""
    assert run("compare", *NEEDED, "--splits", "5") == 0
    assert run("compare", *NEEDED[:-1], "logistic", "--splits", "5") == 0

    assert len(asked) == 2
    assert "svc" in Path("there/report-5.md").read_text()


def test_json_is_one_line(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", *NEEDED, "--splits", "5", "7", "--json") == 1
    output, error = capsys.readouterr()

    assert json.loads(output) == {"out": "there", "cells": {"finished": 1, "failed": 1}}
    assert "1 cells failed" in error and "--retry-failed" in error
    assert "svc, split 7: ValueError: no" in Path("there/report-5_7.md").read_text()


def test_without_a_finished_cell_there_is_no_report(asked: list[dict[str, Any]]) -> None:
    assert run("compare", *NEEDED, "--splits", "7") == 1
    assert not list(Path("there").glob("report*"))


def test_tables_that_are_left_out_are_named(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--out", "there", "--tables", "diabetes", "wine", "--models", "svc"]
    assert run("compare", *arguments, "--splits", "0") == 0

    assert "left out, for want of such a split or model: diabetes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "depth=2"], "settings and label are those of dwp"),
        (["--splits", "10"], "have no split 10"),
    ],
)
def test_refusals_compute_nothing(
    arguments: list[str],
    message: str,
    asked: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("compare", *NEEDED, *arguments) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not asked and not Path("there").exists()


def test_missing_packages_are_told_first(
    asked: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not after the hours that other models take."""
    import sys

    monkeypatch.setitem(sys.modules, "ngboost", None)
    arguments = ["--tables", "diabetes", "--models", "exact-gp", "ngboost", "--out", "there"]
    assert run("compare", *arguments) == 2

    assert 'pip install "gpflow-dwp[rivals]"' in capsys.readouterr().err
    assert not asked and not Path("there").exists()


def test_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RUN, interrupt)
    monkeypatch.chdir(tmp_path)

    assert run("compare", *NEEDED) == 130
    assert "the same command resumes the others" in capsys.readouterr().err


@pytest.mark.slow
def test_cells_run_in_processes_of_their_own_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way, with a real cell."""
    out = tmp_path / "there"
    arguments = ["--tables", "diabetes", "--models", "bayesian-ridge", "--splits", "6"]
    for _ in range(2):
        assert run("compare", *arguments, "--out", out) == 0

    error = capsys.readouterr().err
    assert "[1/1] diabetes, bayesian-ridge, split 6: NLPD 5." in error
    assert "1 of 1 cells are there already" in error
    (record,) = read_results(out)
    assert record.metrics is not None and 0.0 < record.metrics["fit_seconds"] < 5.0
    assert "scikit-learn" in record.provenance["versions"]
    with pytest.raises(ValueError, match="must be of a study, got those of a comparison"):
        results_frame([record])
