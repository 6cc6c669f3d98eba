"""Paired differences and ranks against NumPy by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_results import finished, invented_study, only_row

from gpflow_dwp.lab.study.comparisons import model_ranks, paired_differences
from gpflow_dwp.lab.study.summary import results_frame


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
