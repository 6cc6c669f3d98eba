"""Conditional densities: NumPy by hand, the printed numbers, and the figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_results import finished, invented_study, only_row

from gpflow_dwp.lab.study.densities import density_table
from gpflow_dwp.lab.study.figures import plot_densities
from gpflow_dwp.lab.study.report import write_report
from gpflow_dwp.lab.study.summary import read_results_table, results_frame

DEPTHS = {"GP": 1, "GP-GP": 2, "LV-GP-GP": 2, "LV-DWP": 2}
GP = (-0.66, -0.63, -0.61)
VI = (-0.40, -0.35, -0.38)
IW = (-0.30, -0.28, -0.31, -0.21)


def cells(model: str, exact: Any, *, samples: int = 1, **cell: Any) -> list[Any]:
    """Finished cells of the power plant, one for each split; kernel estimates are 0.01 lower."""
    if samples > 1:
        cell["num_importance_samples"] = samples
    return [
        finished(
            "power",
            DEPTHS[model],
            model,
            split,
            cell={"protocol": "cde", "num_samples": 2 if "DWP" in model else 1, **cell},
            log_likelihood_standardised=value,
            log_likelihood_kernel=value - 0.01,
            shapiro_wilk=0.9 + 0.01 * split,
        )
        for split, value in enumerate(exact)
    ]


def table(*records: list[Any]) -> pd.DataFrame:
    return density_table(results_frame([record for some in records for record in some]))


def test_means_beside_print() -> None:
    row = only_row(table(cells("LV-GP-GP", IW, samples=5)), model="LV-GP-GP")

    error = np.std(IW, ddof=1) / 2.0
    assert row["inference"] == "IWVI" and row["splits"] == 4
    assert row["exact"] == pytest.approx(np.mean(IW))
    assert row["exact_standard_error"] == pytest.approx(error)
    assert row["kernel"] == pytest.approx(np.mean(IW) - 0.01)
    assert row["shapiro_wilk"] == pytest.approx(0.915)
    # -0.28 ± 0.05 in print.
    assert (row["printed_mean"], row["printed_standard_error"]) == (-0.28, 0.05)
    assert row["difference"] == pytest.approx(np.mean(IW) - 0.01 + 0.28)
    assert row["difference_in_se"] == pytest.approx(row["difference"] / np.hypot(error, 0.05))


def test_differences_are_paired() -> None:
    densities = table(
        cells("GP", GP),
        cells("LV-GP-GP", VI),
        cells("LV-GP-GP", IW, samples=5),
        cells("LV-DWP", VI),
    )

    row = only_row(densities, inference="IWVI")
    for name, baseline in (("over_gp", GP), ("over_vi", VI)):
        differences = np.subtract(IW[:3], baseline)
        assert row[name] == pytest.approx(differences.mean())
        error = differences.std(ddof=1) / np.sqrt(3)
        assert row[f"{name}_standard_error"] == pytest.approx(error)
    by_vi = only_row(densities, model="LV-GP-GP", inference="VI")
    assert by_vi["over_gp"] == pytest.approx(np.mean(np.subtract(VI, GP)))
    assert np.isnan(by_vi["over_vi"])
    alone = only_row(densities, model="GP")
    assert np.isnan(alone["over_gp"]) and np.isnan(alone["over_vi"])
    # More draws of a deep Wishart process are part of the model.
    assert np.isfinite(only_row(densities, model="LV-DWP")["over_gp"])


def test_cells_of_other_runs_are_not_compared() -> None:
    densities = table(cells("GP", GP, num_steps=10), cells("LV-GP-GP", VI))

    assert np.isnan(only_row(densities, model="LV-GP-GP")["over_gp"])


def test_one_split_and_nothing_in_print() -> None:
    row = only_row(table(cells("LV-DWP", VI[:1], samples=5)), model="LV-DWP")

    assert row["kernel"] == pytest.approx(VI[0] - 0.01)
    assert np.isnan(row["kernel_standard_error"]) and np.isnan(row["printed_mean"])


def test_other_studies_have_no_row() -> None:
    results = results_frame(invented_study())

    assert density_table(results).empty
    assert not {"shapiro_wilk", "log_likelihood_kernel"} & set(results.columns)
    both = table(invented_study(), cells("GP", GP))
    assert list(both["model"]) == ["GP"]


def test_scores_survive_their_csv_file(tmp_path: Path) -> None:
    results = results_frame([*cells("GP", GP), *cells("LV-GP-GP", IW, samples=5)])
    results.to_csv(tmp_path / "results.csv", index=False)

    read = read_results_table(tmp_path / "results.csv")

    pd.testing.assert_frame_equal(density_table(read), density_table(results))


def test_report(tmp_path: Path) -> None:
    records = [*cells("GP", GP), *cells("LV-GP-GP", VI), *cells("LV-GP-GP", IW, samples=5)]

    text = write_report(records, tmp_path)

    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert (
        "power 2 LV-GP-GP 2 IWVI 4 -0.285 ± 0.023 -0.275 ± 0.023 -0.28 ± 0.05 -0.005 "
        "0.337 ± 0.019 0.080 ± 0.010 0.9150"
    ) in lines
    densities = pd.read_csv(tmp_path / "densities.csv")
    assert list(densities["inference"]) == ["VI", "VI", "IWVI"]
    assert (tmp_path / "densities.png").read_bytes().startswith(b"\x89PNG")
    write_report(invented_study(), tmp_path)
    assert not list(tmp_path.glob("densities.*"))


def test_figure() -> None:
    densities = table(
        cells("GP", GP), cells("LV-GP-GP", IW, samples=5), cells("LV-DWP", VI[:1], samples=5)
    )

    (ax,) = plot_densities(densities).axes

    assert [label.get_text() for label in ax.get_yticklabels()] == ["GP", "LV-GP-GP", "LV-DWP"]
    drawn = [x for line in ax.lines if line.get_marker() in "o^" for x in line.get_xdata()]
    expected = [*densities["kernel"], *densities["printed_mean"].dropna()]
    assert sorted(drawn) == pytest.approx(sorted(expected))
