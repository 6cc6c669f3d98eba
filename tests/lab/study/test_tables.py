"""The numbers of a study against NumPy by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_results import density_cells, finished, frame, invented_study, only_row, splits

from gpflow_dwp.lab.study.frame import results_frame
from gpflow_dwp.lab.study.tables import (
    calibration_table,
    density_table,
    model_ranks,
    paired_differences,
    runtime_table,
    score_table,
)

ELBOS = (2.05, 2.08, 2.11)  # yacht, depth 2, A: 2.07 ± 0.01 in print
GP = (-0.66, -0.63, -0.61)
VI = (-0.40, -0.35, -0.38)
IW = (-0.30, -0.28, -0.31, -0.21)


def score(results: pd.DataFrame, metric: str = "elbo") -> dict[str, Any]:
    """The one row of a metric."""
    return only_row(score_table(results), metric=metric)


def test_score_beside_print() -> None:
    row = score(frame(*splits("A", ELBOS)))
    error = np.std(ELBOS, ddof=1) / np.sqrt(3)
    assert row["splits"] == 3
    assert row["mean"] == pytest.approx(2.08)
    assert row["standard_error"] == pytest.approx(error)
    assert (row["improved_mean"], row["improved_standard_error"]) == (2.07, 0.01)
    assert row["improved_difference"] == pytest.approx(0.01)
    in_errors = 0.01 / np.sqrt(error**2 + 0.01**2)
    assert row["improved_difference_in_se"] == pytest.approx(in_errors)
    assert row["improved_verdict"] == "within"
    assert np.isnan(row["original_mean"]) and row["original_verdict"] == ""


def test_printed_error_of_zero_counts_as_its_rounding() -> None:
    # energy, depth 2, AB: 1.46 ± 0.00 in print.
    elbos = (1.465, 1.475)
    row = score(frame(*splits("AB", elbos, dataset="energy")))
    assert row["improved_standard_error"] == 0.0
    expected = (1.47 - 1.46) / np.hypot(np.std(elbos, ddof=1) / np.sqrt(2), 0.005)
    assert row["improved_difference_in_se"] == pytest.approx(expected)


def test_one_split_has_no_standard_error() -> None:
    row = score(frame(*splits("A", ELBOS[:1])))
    assert row["mean"] == 2.05 and np.isnan(row["standard_error"])
    assert row["improved_difference"] == pytest.approx(-0.02)
    assert np.isnan(row["improved_difference_in_se"]) and row["improved_verdict"] == "one split"


@pytest.mark.parametrize(
    ("metric", "value", "verdict"),
    [
        ("elbo", 3.0, "better"),
        ("elbo", 1.0, "worse"),
        ("rmse", 0.1, "better"),  # lower is better: 0.33 ± 0.03 in print
        ("rmse", 0.9, "worse"),
        ("test_log_likelihood", -3.0, "worse"),
    ],
)
def test_verdicts(metric: str, value: float, verdict: str) -> None:
    records = [
        finished("yacht", 2, "A", split, cell={}, **{metric: value + 0.001 * split})
        for split in range(3)
    ]
    assert score(frame(*records), metric)["improved_verdict"] == verdict


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_not_finite_is_seen(value: float) -> None:
    row = score(frame(*splits("A", (2.0, value))))
    assert not np.isfinite(row["mean"]) and row["improved_verdict"] == "not finite"


def test_calibration() -> None:
    shares = np.array([0.91, 0.95, 0.93])
    records = [
        finished("wine", 3, "GW", split, cell={}, coverage_95=share, crps=2.0 * share)
        for split, share in enumerate(shares)
    ]
    (row,) = calibration_table(frame(*records)).to_dict("records")
    assert row["coverage_95"] == pytest.approx(shares.mean())
    error = np.std(shares, ddof=1) / np.sqrt(3)
    assert row["coverage_95_standard_error"] == pytest.approx(error)
    assert row["crps_standard_error"] == pytest.approx(2.0 * error)
    assert (row["coverage_50"], row["coverage_50_standard_error"]) == (0.5, 0.0)


def test_runtimes_beside_print() -> None:
    times = {"DGP": (0.10, 0.14), "A": (0.05, 0.07), "GW": (0.03, 0.05)}
    records = [
        finished(
            "boston", 2, model, split, cell={}, seconds_per_step=seconds, seconds_per_epoch=seconds
        )
        for model, both in times.items()
        for split, seconds in enumerate(both)
    ]
    table = runtime_table(frame(*records)).set_index("model")
    assert list(table.index) == ["DGP", "GW", "A"]
    assert table.loc["A", "seconds_per_step"] == pytest.approx(0.06)
    assert table.loc["A", "step_over_dgp"] == pytest.approx(0.5)
    assert table.loc["A", "improved_seconds_per_epoch"] == 0.203
    assert table.loc["A", "improved_over_dgp"] == pytest.approx(0.203 / 0.463)
    assert np.isnan(table.loc["A", "original_seconds_per_epoch"])
    assert table.loc["GW", "original_over_dgp"] == pytest.approx(0.214 / 0.318)


def test_steps_are_compared_with_those_of_the_same_splits() -> None:
    times = {
        "DGP": {0: 0.1, 1: 0.8, 2: 0.2},
        "A": {0: 0.11, 2: 0.3, 3: 9.0, 1: 0.8},
        "GW": {4: 1.0},
    }
    records = [
        finished("boston", 2, model, split, cell={}, seconds_per_step=seconds)
        for model, both in times.items()
        for split, seconds in both.items()
    ]
    table = runtime_table(frame(*records)).set_index("model")
    assert table.loc["A", "step_over_dgp"] == pytest.approx(1.1)
    assert dict(table["splits_with_dgp"]) == {"DGP": 3, "A": 3, "GW": 0}
    assert np.isnan(table.loc["GW", "step_over_dgp"])


def test_means_over_versions_of_the_code_are_told() -> None:
    records = [finished("yacht", 2, model, split, cell={}) for model in "A" for split in range(3)]
    other = {**records[2].provenance, "commit": "f" * 40}
    table = score_table(frame(records[0], records[1], replace(records[2], provenance=other)))
    assert set(table["commits"]) == {2}
    assert set(score_table(frame(*records).assign(commit=None))["commits"]) == {0}


def test_runtimes_of_different_machines_are_not_averaged_together() -> None:
    here = finished("boston", 2, "A", 0, cell={}, seconds_per_step=0.1)
    there = finished("boston", 2, "A", 1, cell={}, seconds_per_step=0.9)
    there = replace(there, provenance={**there.provenance, "threads": 8})
    table = runtime_table(frame(here, there))
    assert dict(zip(table["threads"], table["seconds_per_step"], strict=True)) == {1: 0.1, 8: 0.9}
    assert table["step_over_dgp"].isna().all()


def study(scores: dict[str, dict[int, float]], **more: Any) -> pd.DataFrame:
    """A table from ELBOs by model and split; the other metrics follow them."""
    return results_frame(
        finished("yacht", 5, model, split, cell={}, elbo=elbo, rmse=1.0 / (4.0 + elbo), **more)
        for model, by_split in scores.items()
        for split, elbo in by_split.items()
    )


def test_differences_over_common_splits_only() -> None:
    results = study({"A": {0: 1.80, 1: 1.90, 3: 2.5}, "GW": {0: 1.50, 1: 1.70, 2: -9.0}})
    table = paired_differences(results)
    row = only_row(table, metric="elbo")
    differences = np.array([0.30, 0.20])
    assert (row["model"], row["baseline"], row["splits"]) == ("A", "GW", 2)
    assert row["mean"] == pytest.approx(differences.mean())
    error = np.std(differences, ddof=1) / np.sqrt(2)
    assert row["standard_error"] == pytest.approx(error)
    assert row["mean_in_se"] == pytest.approx(differences.mean() / error)
    assert (row["printed_mean"], row["printed_standard_error"]) == (0.20, 0.03)
    assert table.loc[table["metric"] != "elbo", "printed_mean"].isna().all()


def test_pairs_with_the_deep_gaussian_process_and_one_split() -> None:
    table = paired_differences(study({"DGP": {0: 1.5}, "AB": {0: 1.9}, "DIWP": {0: 1.0}}))
    elbo = table[table["metric"] == "elbo"].set_index(["model", "baseline"])
    assert elbo.loc[("AB", "DGP"), "mean"] == pytest.approx(0.4)
    assert elbo.loc[("DIWP", "DGP"), "mean"] == pytest.approx(-0.5)
    assert elbo["standard_error"].isna().all() and elbo["mean_in_se"].isna().all()


def test_configurations_are_not_paired() -> None:
    one = finished("yacht", 5, "A", 0, cell={})
    other = finished("yacht", 5, "GW", 0, cell={"num_steps": 100})
    assert paired_differences(results_frame([one, other])).empty
    assert model_ranks(results_frame([one, other])).empty


def test_a_difference_without_spread_has_no_ratio() -> None:
    table = paired_differences(study({"A": {0: 1.0, 1: 1.0}, "AB": {0: 1.0, 1: 1.0}}))
    assert (table["mean"] == 0.0).all() and table["mean_in_se"].isna().all()


def test_ranks() -> None:
    results = study({"DGP": {0: 1.0, 1: 1.0}, "GW": {0: 2.0, 1: 3.0}, "A": {0: 3.0, 1: 2.0}})
    table = model_ranks(results)
    for metric in ("elbo", "rmse"):  # RMSE falls as ELBO grows, and lower is better
        ranks = table[table["metric"] == metric].set_index("model")
        assert ranks["mean_rank"].to_dict() == {"DGP": 3.0, "GW": 1.5, "A": 1.5}
        assert (ranks["comparisons"] == 2).all()
    crps = table[table["metric"] == "crps"]
    assert (crps["mean_rank"] == 2.0).all()  # all equal
    assert set(table["compared"]) == {"DGP, GW, A-GW"}


def test_ranks_among_different_models_are_kept_apart() -> None:
    results = study({"DGP": {0: 1.0, 1: 1.0}, "GW": {0: 2.0}, "AB": {0: 3.0, 1: 0.0}})
    for compared, rank in (("DGP, GW, AB-GW", 1.0), ("DGP, AB-GW", 2.0)):
        row = only_row(model_ranks(results), metric="elbo", compared=compared, model="AB")
        assert row["mean_rank"] == rank


def test_a_comparison_with_a_missing_score_is_left_out() -> None:
    results = study({"DGP": {0: 1.0, 1: np.nan}, "AB": {0: 2.0, 1: 2.0}})
    for model in ("DGP", "AB"):
        assert only_row(model_ranks(results), metric="elbo", model=model)["comparisons"] == 1


def test_mean_ranks_of_a_study_add_up() -> None:
    table = model_ranks(results_frame(invented_study()))
    for _, rows in table.groupby(["metric", "compared"]):
        assert rows["mean_rank"].sum() == pytest.approx(len(rows) * (len(rows) + 1) / 2)


def table(*records: list[Any]) -> pd.DataFrame:
    return density_table(results_frame([record for some in records for record in some]))


def test_means_beside_print() -> None:
    row = only_row(table(density_cells("LV-GP-GP", IW, samples=5)), model="LV-GP-GP")

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
        density_cells("GP", GP),
        density_cells("LV-GP-GP", VI),
        density_cells("LV-GP-GP", IW, samples=5),
        density_cells("LV-DWP", VI),
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
    densities = table(density_cells("GP", GP, num_steps=10), density_cells("LV-GP-GP", VI))

    assert np.isnan(only_row(densities, model="LV-GP-GP")["over_gp"])


def test_one_split_and_nothing_in_print() -> None:
    row = only_row(table(density_cells("LV-DWP", VI[:1], samples=5)), model="LV-DWP")

    assert row["kernel"] == pytest.approx(VI[0] - 0.01)
    assert np.isnan(row["kernel_standard_error"]) and np.isnan(row["printed_mean"])


def test_other_studies_have_no_row() -> None:
    results = results_frame(invented_study())

    assert density_table(results).empty
    assert not {"shapiro_wilk", "log_likelihood_kernel"} & set(results.columns)
    both = table(invented_study(), density_cells("GP", GP))
    assert list(both["model"]) == ["GP"]
