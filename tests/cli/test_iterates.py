"""The command for experiments with iterates, whose slow ones have stand-ins here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import run

from gpflow_dwp.cli import iterates


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    calls: list[tuple[str, int]] = []

    def compare(dataset: str, split: int, **_: Any) -> Iterator[dict[str, Any]]:
        calls.append((dataset, split))
        if (dataset, split) == ("boston", 1):
            raise KeyboardInterrupt
        scores = {"test_log_likelihood": -1.0 - split, "rmse": 2.0}
        yield {"dataset": dataset, "split": split, "predictor": "SWA", **scores}

    monkeypatch.setattr(iterates, "compare_iterate_posteriors", compare)
    return calls


def test_parts_are_kept_as_they_are_done(
    asked: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "table.csv"
    command = ("iterates", "deep-wishart", "--out", out, "--splits", 2, "--datasets")

    assert run(*command, "yacht") == 0
    assert "yacht" in capsys.readouterr().out
    assert run(*command, "yacht", "boston") == 130  # ended by Ctrl-C
    assert asked == [("yacht", 0), ("yacht", 1), ("boston", 0), ("boston", 1)]
    table = pd.read_csv(out)
    assert list(table["dataset"]) == ["yacht", "yacht", "boston"]
    assert {"versions", "commit", "machine", "date", "threads"} <= set(table.columns)


def test_a_table_of_another_experiment_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.csv"
    out.write_text("dataset,mse\nyacht,1.0\n")

    assert run("iterates", "deep-wishart", "--out", out) == 2
    assert "holds another experiment" in capsys.readouterr().err
    assert out.read_text() == "dataset,mse\nyacht,1.0\n"


def test_linear_regression_beside_its_posterior(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.csv"

    assert run("iterates", "linear-posterior", "--trials", 2, "--out", out, "--quiet") == 0
    output = capsys.readouterr()
    assert "distance_of_covariances" in output.out and not output.err
    assert len(pd.read_csv(out)) == 14
