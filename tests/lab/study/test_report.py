"""Reports: what they say, which files they leave, and that a broken one costs nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from study_results import density_cells, finished, invented_study

from gpflow_dwp.lab.study import figures
from gpflow_dwp.lab.study.frame import read_results_table, results_frame
from gpflow_dwp.lab.study.published import PAPERS
from gpflow_dwp.lab.study.report import REPORT_FILES, markdown_table, write_report
from gpflow_dwp.lab.study.tables import score_table

DENSITIES = {"densities.csv", "densities.png"}  # of other models


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_files_of_a_report(tmp_path: Path) -> None:
    records = invented_study()
    text = write_report(records, tmp_path / "new" / "report")
    directory = tmp_path / "new" / "report"
    assert names(directory) == sorted(set(REPORT_FILES) - DENSITIES)
    assert (directory / "report.txt").read_text(encoding="utf-8") == text
    expected = results_frame(records)
    read = read_results_table(directory / "results.csv")
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)
    scores = pd.read_csv(directory / "scores.csv")
    verdicts = [f"{paper}_verdict" for paper in PAPERS]
    pd.testing.assert_frame_equal(
        scores.drop(columns=verdicts),
        score_table(expected).drop(columns=verdicts),
        check_dtype=False,
    )
    for path in directory.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("undrawn")
def test_text(tmp_path: Path) -> None:
    elbos = (2.05, 2.08, 2.11)
    records = [finished("yacht", 2, "A", s, cell={}, elbo=elbo) for s, elbo in enumerate(elbos)]
    records += [finished("yacht", 2, "GW", 0, cell={}, elbo=2.0)]
    text = write_report(records, tmp_path)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    # Difference 0.010; combined standard error sqrt(0.0173² + 0.01²).
    assert "yacht 2 A-GW 3 2.080 ± 0.017 2.07 ± 0.01 +0.010 +0.5 within" in lines
    assert "yacht 2 GW 1 2.000 * 2.02 ± 0.01 -0.020 one split 2.02 ± 0.01 -0.020 one split" in lines
    assert "yacht 2 A-GW − GW 1 0.050 * 0.05 ± 0.01" in lines
    assert "A-GW A-GW" not in text
    assert "Against the improved paper: 1 within, 1 of one split." in lines
    assert "GW, A-GW GW 2.00 1.50 1.50 1.50 1" in lines
    assert "commit: 0123456" in lines
    assert "4 finished cells, 0 failed cells." in lines


@pytest.mark.usefixtures("undrawn")
def test_matrix_gaussian_networks_beside_their_own_paper(tmp_path: Path) -> None:
    records = [
        finished("yacht", 2, "VMG", split, cell={}, elbo=-2.0, rmse=rmse)
        for split, rmse in enumerate((0.6, 0.7, 0.8))
    ]
    text = write_report(records, tmp_path)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    # Difference -0.070; combined standard error sqrt(0.0577² + 0.06²).
    assert "yacht 2 VMG 3 0.700 ± 0.058 0.77 ± 0.06 -0.070 -0.8 within" in lines
    assert "dataset depth model splits measured vmg diff in SE verdict" in lines
    assert "Against the vmg paper: 1 within." in lines


@pytest.mark.usefixtures("undrawn")
def test_one_configuration_is_not_numbered_and_two_are(tmp_path: Path) -> None:
    records = [finished("yacht", 2, "A", 0, cell={})]
    assert "conf." not in write_report(records, tmp_path)
    records += [finished("yacht", 2, "A", 0, cell={"num_steps": 100}, elbo=0.5)]
    text = write_report(records, tmp_path)
    assert "conf." in text
    assert "0.500 *" in text and "1.000 *" in text


@pytest.mark.usefixtures("undrawn")
def test_failed_cells_are_listed_unless_a_later_try_finished(tmp_path: Path) -> None:
    records = invented_study()
    lost = replace(records[0], key="lost", status="failed", error="LayerError: layer\n 2 broke")
    later = replace(records[1], status="failed", error="out of memory")
    text = write_report([later, *records, replace(lost, metrics=None)], tmp_path)
    assert "1 failed cells" in text and "LayerError: layer 2 broke" in text
    assert "out of memory" not in text
    assert pd.read_csv(tmp_path / "failures.csv")["error"].tolist() == [
        "LayerError: layer\n 2 broke"
    ]


@pytest.mark.usefixtures("undrawn")
def test_only_failures(tmp_path: Path) -> None:
    (record, *_) = invented_study()
    lost = replace(record, status="failed", error="no", metrics=None)
    write_report([record], tmp_path)
    text = write_report([lost], tmp_path)
    assert "0 finished cells, 1 failed cells" in text
    assert names(tmp_path) == ["failures.csv", "report.txt", "results.csv"]


@pytest.mark.usefixtures("undrawn")
def test_a_table_of_results_will_do(tmp_path: Path) -> None:
    records = invented_study()
    text = write_report(results_frame(records), tmp_path / "a")
    assert text == write_report(records, tmp_path / "b")


def test_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one cell, got none"):
        write_report([], tmp_path / "report")
    assert not (tmp_path / "report").exists()


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_report_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results.jsonl").write_text("of the study")
    write_report(invented_study(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(figures, "plot_coverage", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(invented_study()[:3], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("undrawn")
def test_a_new_report_takes_what_is_stale_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("of the study")
    write_report(invented_study(), tmp_path)
    alone = finished("yacht", 2, "A", 0, cell={}, coverage_95=float("nan"))
    write_report([alone], tmp_path)
    stale = {"differences.png", "coverage.png"} | DENSITIES
    assert set(names(tmp_path)) == {"results.jsonl", *REPORT_FILES} - stale


def test_markdown() -> None:
    records = [
        finished("yacht", 2, "GW", 0, cell={}, elbo=2.0),
        finished("yacht", 2, "GW", 1, cell={}, elbo=2.02),
        finished("yacht", 2, "A", 0, cell={}, elbo=2.0766),
        finished("yacht", 3, "GW", 0, cell={}, elbo=1.9),
    ]
    results = results_frame(records)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown_table(results).splitlines()
    ]
    assert rows[0] == ["data set", "depth", "splits", "GW", "A-GW"]
    assert rows[2:] == [
        ["yacht", "2", "1 to 2", "2.010 ± 0.010 (2.02 ± 0.01)", "2.077 (2.07 ± 0.01)"],
        ["yacht", "3", "1", "1.900 (1.86 ± 0.02)", ""],
    ]
    assert "(2.07" not in markdown_table(results, paper="original")  # where nothing is printed
    other = finished("yacht", 2, "A", 0, cell={"seed": 1})
    assert "configuration" in markdown_table(results_frame([*records, other]))


def test_markdown_of_unknown_names() -> None:
    results = results_frame(invented_study())
    with pytest.raises(ValueError, match="metric must be one of elbo, .*got 'crps'"):
        markdown_table(results, "crps")
    with pytest.raises(
        ValueError, match="paper must be one of improved, original, vmg, got 'both'"
    ):
        markdown_table(results, paper="both")


@pytest.mark.usefixtures("undrawn")
def test_densities(tmp_path: Path) -> None:
    by_iwvi = density_cells("LV-GP-GP", (-0.30, -0.28, -0.31, -0.21), samples=5)
    records = [
        *density_cells("GP", (-0.66, -0.63, -0.61)),
        *density_cells("LV-GP-GP", (-0.40, -0.35, -0.38)),
        *by_iwvi,
    ]

    text = write_report(records, tmp_path)

    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert (
        "power 2 LV-GP-GP 2 IWVI 4 -0.285 ± 0.023 -0.275 ± 0.023 -0.28 ± 0.05 -0.005 "
        "0.337 ± 0.019 0.080 ± 0.010 0.9150"
    ) in lines
    densities = pd.read_csv(tmp_path / "densities.csv")
    assert list(densities["inference"]) == ["VI", "VI", "IWVI"]
    assert (tmp_path / "densities.png").is_file()
    write_report(invented_study(), tmp_path)
    assert not list(tmp_path.glob("densities.*"))
