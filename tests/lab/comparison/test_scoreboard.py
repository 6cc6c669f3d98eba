"""Means, paired differences and tables won, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from comparison_results import compared

from gpflow_dwp.lab.comparison.scoreboard import (
    comparison_frame,
    comparison_scores,
    tables_won,
)
from gpflow_dwp.lab.study.results import Record

GP, FOREST, OWN = [1.0, 2.0, 6.0], [1.2, 2.1, 6.6], [0.0, 3.0, 9.0]


def scores(*records: list[Record]) -> pd.DataFrame:
    return comparison_scores(comparison_frame([one for many in records for one in many]))


def row(table: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_differences_are_paired() -> None:
    """Unpaired standard errors would be those of the splits' difficulty, 1.5 here."""
    table = scores(compared("yacht", "exact-gp", GP), compared("yacht", "random-forest", FOREST))

    for label, values in (("exact-gp", GP), ("random-forest", FOREST)):
        found = row(table, metric="nlpd", label=label)
        differences = [mine - best for mine, best in zip(values, GP, strict=True)]
        assert found["mean"] == pytest.approx(sum(values) / 3)
        assert found["standard_error"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
        assert found["difference"] == pytest.approx(sum(differences) / 3)
        assert found["difference_standard_error"] == pytest.approx(
            np.std(differences, ddof=1) / np.sqrt(3)
        )
    assert row(table, metric="crps", label="exact-gp")["is_best"]
    assert not row(table, metric="crps", label="random-forest")["among_best"]


def test_what_is_within_one_paired_standard_error_is_among_the_best() -> None:
    table = scores(compared("yacht", "exact-gp", GP), compared("yacht", "dwp-deep", OWN))

    own = row(table, metric="rmse", label="dwp-deep")
    assert own["difference"] == pytest.approx(1.0)
    assert own["difference_standard_error"] == pytest.approx(np.std([-1, 1, 3], ddof=1) / 3**0.5)
    assert own["among_best"] and not own["is_best"]


def test_coverage_and_times_have_no_best() -> None:
    table = scores(compared("yacht", "exact-gp", GP), compared("yacht", "hist-gb", FOREST))

    some = table[table["metric"].isin(["coverage_90", "fit_seconds", "predict_seconds"])]
    assert len(some) == 6 and not some["is_best"].any() and some["difference"].isna().all()


def test_a_model_of_fewer_splits_is_no_best_and_compared_on_its_own() -> None:
    """A lucky split must not win a table."""
    table = scores(compared("yacht", "exact-gp", GP), compared("yacht", "ngboost", [0.5]))

    lucky = row(table, metric="nlpd", label="ngboost")
    assert (lucky["splits"], lucky["difference"]) == (1, -0.5) and not lucky["is_best"]
    assert np.isnan(lucky["difference_standard_error"])
    assert row(table, metric="nlpd", label="exact-gp")["is_best"]


def test_scores_that_are_no_numbers_are_infinitely_bad() -> None:
    """Left out, they would leave a mean of the splits that went well."""
    broken = compared("yacht", "ngboost", [0.1, float("nan"), 0.1])
    table = scores(compared("yacht", "exact-gp", GP), broken)

    assert row(table, metric="nlpd", label="ngboost")["mean"] == np.inf
    assert row(table, metric="nlpd", label="exact-gp")["is_best"]
    assert not row(table, metric="nlpd", label="ngboost")["among_best"]


def test_tasks_have_their_own_metrics_in_order() -> None:
    table = scores(compared("wine", "svc", [0.1]), compared("yacht", "exact-gp", [0.2]))

    assert list(dict.fromkeys(table["table"])) == ["yacht", "wine"]
    metrics = table.groupby("table", sort=False)["metric"].agg(list)
    seconds = ["fit_seconds", "predict_seconds"]
    assert metrics["yacht"] == ["nlpd", "crps", "rmse", "coverage_90", *seconds]
    assert metrics["wine"] == ["nll", "error", "ece", *seconds]


def test_the_later_of_two_cells_of_a_label_counts() -> None:
    """As where defaults have changed since."""
    old, new = (
        compared("yacht", "dwp", [s], settings={"depth": d}) for s, d in ((1.0, 2), (2.0, 3))
    )

    frame = comparison_frame([*old, *new])

    assert list(frame["nlpd"]) == [2.0]


def test_models_that_tie_win_both() -> None:
    """As where no row is wrong; the order of names must not decide."""
    tied = scores(*(compared("wine", label, [0.0, 0.1]) for label in ("svc", "hist-gb")))

    errors = tied[tied["metric"] == "error"]
    assert list(errors["is_best"]) == list(errors["among_best"]) == [True, True]
    won = tables_won(tied)
    assert set(won["best"]) == {1}


def test_tables_won() -> None:
    table = scores(
        compared("yacht", "exact-gp", GP),
        compared("yacht", "dwp-deep", OWN),
        compared("boston", "exact-gp", FOREST),
        compared("boston", "dwp-deep", [0.1, 0.2, 0.3]),
        compared("energy", "exact-gp", GP),  # alone, which is no victory
    )

    won = tables_won(table)

    gp, own = (row(won, metric="crps", label=label) for label in ("exact-gp", "dwp-deep"))
    assert (gp["tables"], gp["best"], gp["among_best"]) == (2, 1, 1)
    assert (own["tables"], own["best"], own["among_best"]) == (2, 1, 2)
    assert set(won["metric"]) == {"nlpd", "crps", "rmse"}


def test_without_a_finished_cell_there_are_no_scores() -> None:
    with pytest.raises(ValueError, match="at least one finished cell, got none"):
        comparison_frame([])
