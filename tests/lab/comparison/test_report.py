"""The report: what it says, where it goes, and what a failure leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from comparison_results import compared

from gpflow_dwp.lab.comparison import report
from gpflow_dwp.lab.comparison.report import write_comparison
from gpflow_dwp.lab.comparison.tables import TABLES

RECORDS = [
    *compared("yacht", "exact-gp", [1.0, 2.0, 6.0]),
    *compared("yacht", "random-forest", [1.2, 2.1]),
    *compared("yacht", "dwp-deep", [150.0, 310.0, 290.0], settings={"depth": 5}),
    *compared("wine", "svc", [0.1, 0.2], first_split=1),
]
FAILED = replace(
    compared("wine", "svgp", [0.0])[0], status="failed", error="ValueError: no", metrics=None
)


@pytest.mark.usefixtures("undrawn")
def test_what_it_says(tmp_path: Path) -> None:
    text = write_comparison([*RECORDS, FAILED], tmp_path, [0, 1, 2], list(TABLES))

    lines = text.splitlines()
    assert "| table   | exact-gp   | random-forest          | dwp-deep        |" in lines
    assert "| yacht   | **3**      | 1.65 (+0.15 ± 0.05) /2 | 250 (+247 ± 49) |" in lines
    assert "- wine, svgp, split 0: ValueError: no" in lines
    assert '- dwp-deep: `{"depth": 5}`' in lines
    assert any(line.startswith("| wine    | classification | 178 |  13 |") for line in lines)


@pytest.mark.usefixtures("undrawn")
def test_one_split_has_no_standard_error(tmp_path: Path) -> None:
    text = write_comparison(RECORDS, tmp_path, [0], ["yacht"])

    assert "| yacht   | **1**      | 1.2 (+0.2)      | 150 (+149) |" in text
    assert "± nan" not in text


def test_files_are_named_by_the_splits(tmp_path: Path) -> None:
    """Claims and choices, which are of other splits, must not replace each other."""
    for splits in ([0, 1], [1, 2], [0, 2]):
        write_comparison(RECORDS, tmp_path, splits, ["yacht"])

    for ending in ("0-1", "1-2", "0_2"):
        text = (tmp_path / f"report-{ending}.md").read_text()
        assert text.startswith(f"# Comparison, splits {ending}\n") and "svc" not in text
        scores = pd.read_csv(tmp_path / f"scores-{ending}.csv")
        assert set(scores["table"]) == {"yacht"}
        content = (tmp_path / f"relative-{ending}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 9


@pytest.mark.usefixtures("undrawn")
def test_a_failure_leaves_the_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_comparison(RECORDS, tmp_path, [0, 1], ["yacht"])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(scores: pd.DataFrame) -> None:
        raise RuntimeError("no figure")

    monkeypatch.setattr(report, "plot_relative_scores", fail)
    with pytest.raises(RuntimeError, match="no figure"):
        write_comparison(RECORDS[:2], tmp_path, [0, 1], ["yacht"])

    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_nothing_finished_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one finished cell"):
        write_comparison(RECORDS, tmp_path, [7], ["yacht"])
    assert not list(tmp_path.iterdir())
