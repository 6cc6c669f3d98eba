"""Figures of a study hold what its tables hold, leave pyplot alone, and can be written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_results import density_cells, finished, invented_study

from gpflow_dwp.lab.study.figures import (
    plot_coverage,
    plot_densities,
    plot_differences,
    plot_runtimes,
    plot_scores,
)
from gpflow_dwp.lab.study.frame import results_frame
from gpflow_dwp.lab.study.tables import (
    calibration_table,
    density_table,
    paired_differences,
    runtime_table,
    score_table,
)


@pytest.fixture
def results() -> pd.DataFrame:
    return results_frame(invented_study())


def panels(figure: Any) -> dict[str, Any]:
    return {ax.get_title(): ax for ax in figure.axes if ax.get_visible()}


def points(ax: Any) -> list[tuple[float, float]]:
    """Everything that is drawn as markers."""
    return [
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() not in ("None", "|", "_", "")
        for x, y in np.column_stack(line.get_data())
        if np.isfinite(x) and np.isfinite(y)
    ]


def test_scores_hold_measured_and_printed_means(results: pd.DataFrame) -> None:
    scores = score_table(results)
    axes = panels(plot_scores(scores, "elbo"))
    assert list(axes) == ["protein, depth 2", "yacht, depth 2", "yacht, depth 5"]
    drawn = sorted(y for _, y in points(axes["yacht, depth 5"]))
    chosen = scores[(scores["metric"] == "elbo") & (scores["depth"] == 5)]
    values = chosen[["mean", "improved_mean", "original_mean"]].to_numpy().ravel()
    assert drawn == pytest.approx(sorted(values[np.isfinite(values)]))


def test_differences_have_a_panel_for_each_pair(results: pd.DataFrame) -> None:
    differences = paired_differences(results)
    axes = panels(plot_differences(differences))
    assert list(axes)[:3] == ["AB-GW − DGP", "A-GW − GW", "AB-GW − GW"]
    chosen = differences[differences["metric"] == "elbo"]
    chosen = chosen[(chosen["model"] == "A") & (chosen["baseline"] == "AB")]
    drawn = sorted(x for x, _ in points(axes["A-GW − AB-GW"]))
    assert drawn == pytest.approx(sorted([*chosen["mean"], *chosen["printed_mean"]]))


def test_runtimes_and_coverage_hold_every_row(results: pd.DataFrame) -> None:
    runtimes, calibration = runtime_table(results), calibration_table(results)
    (ax,) = panels(plot_runtimes(runtimes)).values()
    printed = runtimes[["improved_seconds_per_epoch", "original_seconds_per_epoch"]]
    assert len(points(ax)) == len(runtimes) + printed.notna().to_numpy().sum()
    ax = panels(plot_coverage(calibration))["95% intervals"]
    assert sorted(x for x, _ in points(ax)) == pytest.approx(sorted(calibration["coverage_95"]))


def test_several_configurations_of_one_place_have_rows_of_their_own() -> None:
    records = [
        finished("yacht", 2, model, 0, cell={"num_steps": steps})
        for steps in (100, 200)
        for model in ("DGP", "AB")
    ]
    results = results_frame([*records, finished("wine", 2, "AB", 0, cell={})])
    names = ["wine, depth 2", "yacht, depth 2 (2)", "yacht, depth 2 (3)"]
    assert list(panels(plot_scores(score_table(results), "elbo"))) == names
    ax = plot_runtimes(runtime_table(results)).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == names


def test_a_metric_without_rows(results: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="metric must be one of the table's, got 'accuracy'"):
        plot_scores(score_table(results), "accuracy")
    with pytest.raises(ValueError, match="which has no row"):
        plot_differences(paired_differences(results), "coverage_50")


def test_densities_are_drawn_with_the_printed_ones() -> None:
    records = [
        *density_cells("GP", (-0.66, -0.63)),
        *density_cells("LV-GP-GP", (-0.30, -0.28), samples=5),
        *density_cells("LV-DWP", (-0.40,), samples=5),
    ]
    densities = density_table(results_frame(records))

    (ax,) = plot_densities(densities).axes

    assert [label.get_text() for label in ax.get_yticklabels()] == ["GP", "LV-GP-GP", "LV-DWP"]
    drawn = [x for line in ax.lines if line.get_marker() in "o^" for x in line.get_xdata()]
    expected = [*densities["kernel"], *densities["printed_mean"].dropna()]
    assert sorted(drawn) == pytest.approx(sorted(expected))
