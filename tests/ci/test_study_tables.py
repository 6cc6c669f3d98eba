"""Tables of cells: means, errors and differences by hand, and printed numbers as printed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import study
from uci import tables
from uci.tables import KEPT, as_frame, published

AS_PRINTED = [
    # Ober, Anson, Milsom and Aitchison (2023): Tables 3, 5, 6, 4 and 2.
    (("elbo", "improved"), "naval 5 AB", 3.63, 0.22),
    (("elbo_difference", "improved"), "yacht 5 A GW", 0.20, 0.03),
    # Ober and Aitchison (2021): Tables 2, 3 and 4.
    (("elbo", "original"), "yacht 5 DGP", 1.37, 0.03),
    (("test_log_likelihood", "original"), "kin8nm 3 DIWP", 1.01, np.nan),
    # Louizos and Welling (2016): Table 1.
    (("rmse", "vmg"), "boston 2 VMG", 2.81, 0.11),
    # Salimbeni, Dutordoir, Hensman and Deisenroth (2019): Table 1.
    (("log_likelihood_kernel", "iwvi"), "energy LV-GP-GP-GP IWVI", 2.28, 0.01),
]


def cell(model: str, split: int, elbo: float, **changes: Any) -> dict[str, Any]:
    where = {"dataset": "yacht", "depth": 2, "model": model, "split": split, "num_steps": 9}
    found = {"elbo": elbo, "test_log_likelihood": -1.0, "rmse": 0.5, "crps": 0.3}
    found |= {f"coverage_{level}": level / 100 for level in (50, 90, 95)}
    times = {"seconds_per_step": 0.1, "seconds_per_epoch": 0.2, "training_seconds": 2.0}
    return where | found | times | {"machine": "one", "threads": 1} | changes


def only(table: pd.DataFrame, **where: Any) -> dict[str, Any]:
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


STUDY = as_frame(
    [
        *(cell("DGP", split, 1.0 + split) for split in range(3)),
        *(cell("A", split, 1.5 + 2.0 * split, seconds_per_step=0.05) for split in range(3)),
        cell("A", 0, 9.0, num_steps=10),
    ]
)


@pytest.mark.parametrize(("what", "place", "mean", "error"), AS_PRINTED)
def test_numbers_are_as_printed(what: Any, place: str, mean: float, error: float) -> None:
    table = published(*what)
    parts = table[["dataset", "depth", "model", "baseline", "inference"]]
    parts = parts.assign(depth=parts["depth"].map("{:.0f}".format)).astype(object)
    names = parts.where(parts.notna() & (parts != "nan"), "").agg(" ".join, axis=1).str.split()
    row = table[names.str.join(" ") == place]
    np.testing.assert_array_equal(row[["mean", "standard_error"]], [[mean, error]])


def test_a_printed_number_that_changes_is_noticed() -> None:
    digest = hashlib.sha256((KEPT / "printed.csv").read_bytes()).hexdigest()
    assert digest == "bed9dd796ef7fe4bb8c1602bdec35c93dbee1a268384f37263e1c5dd62b78e1b"


def test_means_and_errors_are_over_splits_of_one_configuration() -> None:
    """Catches cells of other settings among the splits, and a biased deviation."""
    scores = tables.score_table(STUDY)
    row = only(scores, metric="elbo", model="A", splits=3)
    assert row["mean"] == pytest.approx(3.5)
    assert row["standard_error"] == pytest.approx(np.std([1.5, 3.5, 5.5], ddof=1) / np.sqrt(3))
    printed = only(published("elbo", "improved"), dataset="yacht", depth=2, model="A")
    combined = np.hypot(row["standard_error"], printed["standard_error"])
    expected = (3.5 - printed["mean"]) / combined
    assert row["improved_difference_in_se"] == pytest.approx(expected)
    assert row["improved_verdict"] == "within"
    alone = only(scores, metric="elbo", model="A", splits=1)
    assert np.isnan(alone["standard_error"]) and alone["improved_verdict"] == "one split"
    text = tables.markdown_table(STUDY)
    assert "3.500 ± 1.155 (2.07 ± 0.01)" in text and "9.000 (2.07 ± 0.01)" in text


def test_the_objective_of_networks_is_no_bound_in_any_table() -> None:
    """Catches objective (11), which may exceed the evidence, beside bounds."""
    scores = tables.score_table(as_frame([cell("VMG", 0, 5.0)]))
    assert set(scores["metric"]) == {"test_log_likelihood", "rmse"}


def test_differences_are_paired_by_split() -> None:
    """The splits' own difficulty drops out."""
    row = only(tables.paired_differences(STUDY), metric="elbo", model="A", baseline="DGP")
    differences = np.array([0.5, 1.5, 2.5])
    assert row["mean"] == pytest.approx(1.5) and row["splits"] == 3
    assert row["standard_error"] == pytest.approx(differences.std(ddof=1) / np.sqrt(3))
    times = only(tables.runtime_table(STUDY), model="A", splits=3)
    assert times["step_over_dgp"] == pytest.approx(0.5)
    assert only(tables.calibration_table(STUDY), model="A", splits=3)["coverage_90"] == 0.9


def test_densities_are_compared_with_what_is_otherwise_alike() -> None:
    """By VI and IWVI, over the splits that both have."""

    def density(model: str, split: int, exact: float, **changes: Any) -> dict[str, Any]:
        scores = {"log_likelihood_standardised": exact, "log_likelihood_kernel": exact - 0.1}
        depth = 1 if model == "GP" else 2
        own = {"depth": depth, "dataset": "power", "shapiro_wilk": 0.9}
        return cell(model, split, 0.0, **own, **scores, **changes)

    cells = as_frame(
        [
            *(density("GP", split, 0.1 * split) for split in (0, 1)),
            *(density("LV-GP-GP", split, 0.3 + 0.1 * split) for split in (0, 1)),
            density("LV-GP-GP", 1, 1.0, num_importance_samples=5),
        ]
    )
    table = tables.density_table(cells)
    vi = only(table, model="LV-GP-GP", inference="VI")
    assert vi["over_gp"] == pytest.approx(0.3) and np.isnan(vi["over_vi"])
    assert vi["printed_mean"] == -0.36 and vi["kernel"] == pytest.approx(0.25)
    iwvi = only(table, model="LV-GP-GP", inference="IWVI")
    assert iwvi["over_vi"] == pytest.approx(0.6) and iwvi["over_gp"] == pytest.approx(0.9)
    ranks = tables.density_ranks(cells)  # of models of different depth, which scores rank apart
    best = only(ranks, inference="IWVI")
    assert (best["mean_rank"], best["median_over_gp"]) == (1.0, pytest.approx(0.9))
    assert sorted(ranks["compared"].unique()) == [
        "GP VI, LV-GP-GP IWVI, LV-GP-GP VI",
        "GP VI, LV-GP-GP VI",
    ]


@pytest.mark.usefixtures("undrawn")
def test_kept_results_make_all_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report of what is under version control, as `python ci/study.py report` writes it."""
    lines = [json.loads(line) for line in (KEPT / "study.jsonl").read_text().splitlines()]
    few = [line for line in lines if (line["study"], line["dataset"]) == ("uci", "energy")]
    few = [line for line in few if line["model"] in ("A", "DGP")]
    text = "".join(f"{json.dumps(line)}\n" for line in [*few, {"failure": "x"}])
    (tmp_path / "results.jsonl").write_text(text)
    assert study.report([tmp_path / "none"]) == 1 and "No cell" in capsys.readouterr().out
    assert study.report([tmp_path]) == 0
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert {"report.md", "scores.csv", "elbo.png", "differences.csv"} <= names
    assert f"{len(few)} cells; 1 failed" in capsys.readouterr().out
    assert {line["study"] for line in lines} == {
        *("uci", "densities", "inducing_points", "matrix_gaussian", "printed_split"),
        "seven_models",
    }
