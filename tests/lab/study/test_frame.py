"""The flat table: a row for each cell, by records or CSV file, and its configurations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from study_results import density_cells, finished, frame, invented_study, splits

from gpflow_dwp.lab.study.frame import configurations, differing_configurations, read_results_table
from gpflow_dwp.lab.study.tables import calibration_table, runtime_table, score_table

ELBOS = (2.05, 2.08, 2.11)


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
    records = [*invented_study(), *density_cells("LV-GP-GP", (-0.3, -0.2), samples=5)]
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


def test_what_differs_between_configurations() -> None:
    annealed = splits("A", ELBOS, cell={"kl_annealing_steps": 10})
    shown = differing_configurations(frame(*splits("A", ELBOS), *annealed))
    assert {*shown.columns} == {"configuration", "kl_annealing_steps"}
    assert sorted(shown["kl_annealing_steps"], key=str) == ["", 10]


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
