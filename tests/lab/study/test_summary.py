"""The numbers of a study against NumPy by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_results import finished, invented_study, only_row

from gpflow_dwp.lab.study.summary import (
    calibration_table,
    configurations,
    read_results_table,
    results_frame,
    runtime_table,
    score_table,
)

ELBOS = (2.05, 2.08, 2.11)  # yacht, depth 2, A: 2.07 ± 0.01 in print


def frame(*records: Any) -> pd.DataFrame:
    return results_frame(records)


def splits(model: str, elbos: Any, *, dataset: str = "yacht", **more: Any) -> list[Any]:
    return [
        finished(dataset, 2, model, split, **{"cell": {}, "elbo": elbo, **more})
        for split, elbo in enumerate(elbos)
    ]


def score(results: pd.DataFrame, metric: str = "elbo") -> dict[str, Any]:
    """The one row of a metric."""
    return only_row(score_table(results), metric=metric)


def test_a_row_for_each_finished_cell_in_the_order_of_the_tables() -> None:
    records = invented_study()
    failed = replace(records[0], key="x", status="failed", error="no", metrics=None)
    results = frame(*reversed(records), failed)
    assert len(results) == len(records)
    first = results.to_dict("records")[0]
    assert (first["dataset"], first["model"], first["batch_size"]) == ("protein", "DGP", 1_000)
    assert list(results["model"].iloc[2:6]) == ["DGP", "DGP", "DGP", "GW"]
    assert list(results["split"].iloc[2:5]) == [0, 1, 2]
    assert first["versions"] == "gpflow 2.11.2; numpy 1.26.4"
    assert (first["commit"], first["threads"]) == ("0123456", 1)
    assert frame(failed).empty


def test_the_table_survives_its_csv_file(tmp_path: Path) -> None:
    records = invented_study()
    records[0] = replace(records[0], cell={**records[0].cell, "options": {"whiten": True}})
    results = frame(*records)
    for index in (False, True):
        results.to_csv(tmp_path / "results.csv", index=index)
        read = read_results_table(tmp_path / "results.csv")
        pd.testing.assert_frame_equal(read, results, check_dtype=False, check_exact=True)
        assert configurations(read).equals(configurations(results))
    assert read["commit"].iloc[0] == "0123456"  # not a number


def test_a_file_that_is_no_such_table(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("dataset,depth\nyacht,2\n")
    with pytest.raises(ValueError, match=r"other.csv is not the table .* column model, split"):
        read_results_table(path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"other.csv is not the table"):
        read_results_table(path)


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


def test_configurations_are_not_averaged_together() -> None:
    short = splits("A", (1.0, 1.2), cell={"num_steps": 100})
    results = frame(*splits("A", ELBOS), *short)
    table = score_table(results)
    elbo = table[table["metric"] == "elbo"]
    assert sorted(elbo["mean"]) == pytest.approx([1.1, 2.08])
    described = configurations(results).set_index("configuration")
    for row in elbo.to_dict("records"):
        steps = 100 if row["splits"] == 2 else 20_000
        assert described.loc[row["configuration"], "num_steps"] == steps
        assert described.loc[row["configuration"], "cells"] == row["splits"]


def test_every_field_of_a_cell_tells_configurations_apart() -> None:
    # A field that this module does not know by name, which older results do not have either.
    results = frame(*splits("A", ELBOS), *splits("A", ELBOS, cell={"options": {"whiten": True}}))
    assert list(configurations(results)["cells"]) == [3, 3]


def test_the_same_cell_twice() -> None:
    one = finished("yacht", 2, "A", 0, cell={})
    with pytest.raises(ValueError, match="twice: dataset yacht, depth 2, model A, split 0"):
        frame(one, replace(one, key="other"))


def test_an_unknown_model() -> None:
    with pytest.raises(ValueError, match=r"model must be one of DGP.*got \['SVGP'\]"):
        frame(finished("yacht", 2, "SVGP", 0, cell={}))


@pytest.mark.parametrize(
    "table",
    [score_table, calibration_table, runtime_table, configurations],
    ids=lambda f: f.__name__,
)
def test_tables_of_nothing(table: Any) -> None:
    with pytest.raises(ValueError, match="results must hold at least one finished cell"):
        table(frame(finished("yacht", 2, "A", 0, cell={})).iloc[:0])
    with pytest.raises(ValueError, match="results must have a column dataset"):
        table(frame())


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
    assert set(score_table(frame(*records).drop(columns="commit"))["commits"]) == {0}


def test_runtimes_of_different_machines_are_not_averaged_together() -> None:
    here = finished("boston", 2, "A", 0, cell={}, seconds_per_step=0.1)
    there = finished("boston", 2, "A", 1, cell={}, seconds_per_step=0.9)
    there = replace(there, provenance={**there.provenance, "threads": 8})
    table = runtime_table(frame(here, there))
    assert dict(zip(table["threads"], table["seconds_per_step"], strict=True)) == {1: 0.1, 8: 0.9}
    assert table["step_over_dgp"].isna().all()
