"""The printed numbers: some of each table as the papers have them, and what holds among all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from package_source import ROOT
from study_results import only_row

from gpflow_dwp.lab.study.published import (
    LARGEST_ROUNDING,
    published_densities,
    published_differences,
    published_runtimes,
    published_scores,
)

DATASETS = ["boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"]


AS_PRINTED = [
    # Ober, Anson, Milsom and Aitchison (2023): Tables 3, 5, 6, 4 and 2.
    (published_scores, ("improved", "naval", 5, "elbo", "AB"), (3.63, 0.22)),
    (published_scores, ("improved", "protein", 2, "test_log_likelihood", "DGP"), (-2.82, 0.00)),
    (published_scores, ("improved", "concrete", 5, "rmse", "AB"), (5.24, 0.11)),
    (published_differences, ("yacht", 5, "A", "GW"), (0.20, 0.03)),
    (published_runtimes, ("improved", "protein", 5, "AB"), (1.839,)),
    # Ober and Aitchison (2021): Tables 2, 3 and 4.
    (published_scores, ("original", "yacht", 5, "elbo", "DGP"), (1.37, 0.03)),
    (published_scores, ("original", "protein", 4, "test_log_likelihood", "GW"), (-2.73, 0.01)),
    (published_runtimes, ("original", "boston", 5, "DGP"), (0.668,)),
    # Louizos and Welling (2016): Table 1.
    (published_scores, ("vmg", "boston", 2, "rmse", "VMG"), (2.81, 0.11)),
    (published_scores, ("vmg", "protein", 2, "rmse", "Dropout"), (4.36, 0.04)),
    # Salimbeni, Dutordoir, Hensman and Deisenroth (2019): Table 1.
    (published_densities, ("energy", "LV-GP-GP-GP", "IWVI"), (2.28, 0.01)),
    (published_densities, ("houseelectric", "LV-GP-GP-GP", "VI"), (1.77, 0.06)),
]
PLACES = ("paper", "dataset", "depth", "metric", "model", "baseline", "inference")
NUMBERS = ("mean", "standard_error", "seconds_per_epoch")


@pytest.mark.parametrize(("table", "place", "numbers"), AS_PRINTED)
def test_numbers_are_as_printed(
    table: Callable[[], pd.DataFrame], place: tuple[Any, ...], numbers: tuple[float, ...]
) -> None:
    names = [name for name in PLACES if name in table()]
    row = only_row(table(), **dict(zip(names, place, strict=True)))
    assert tuple(row[name] for name in NUMBERS if name in row) == numbers


def test_a_number_that_changes_is_noticed() -> None:
    files = sorted((ROOT / "gpflow_dwp/lab/study/published").glob("*.csv"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    assert digest == "6564d965479e73a2c57a787b3bdf3c3de984f844674ec4fbc01376cd7f7fb6d6"


def test_every_cell_is_there_once() -> None:
    scores = published_scores()
    place = ["paper", "dataset", "depth", "metric", "model"]
    # 9 sets, 4 depths, 3 metrics of 4 models; 2 of 2; 9 sets, one depth, 2 metrics of 4 models.
    assert scores.groupby("paper").size().to_dict() == {
        "improved": 9 * 4 * 3 * 4,
        "original": 9 * 4 * 2 * 2,
        "vmg": 9 * 2 * 4,
    }
    assert not scores.duplicated(place).any()
    assert len(published_runtimes()) == 16 + 8
    assert sorted(scores["dataset"].unique()) == DATASETS
    assert sorted(scores["depth"].unique()) == [2, 3, 4, 5]
    assert not scores.isna().any().any()
    assert dict(zip(scores["dataset"], scores["splits"], strict=True)) == {
        name: 5 if name == "protein" else 20 for name in DATASETS
    }


def test_differences_are_those_of_the_printed_means_and_not_paired() -> None:
    scores = published_scores()
    elbo = scores[(scores["paper"] == "improved") & (scores["metric"] == "elbo")]
    differences = published_differences()
    assert len(differences) == 9 * 4 * 3
    for row in differences.to_dict("records"):
        model, baseline = (
            only_row(elbo, dataset=row["dataset"], depth=row["depth"], model=row[side])
            for side in ("model", "baseline")
        )
        assert row["mean"] == pytest.approx(model["mean"] - baseline["mean"], abs=1e-9)
        independent = np.hypot(model["standard_error"], baseline["standard_error"])
        assert abs(row["standard_error"] - independent) <= LARGEST_ROUNDING + 1e-9


def test_every_density_is_there_once() -> None:
    densities = published_densities()
    assert len(densities) == 41 * 9
    assert not densities.duplicated(["dataset", "model", "inference"]).any()
    assert not densities.isna().any().any()
    assert set(DATASETS) <= set(densities["dataset"]) and set(densities["splits"]) == {5}
    latent = densities["model"].str.startswith("LV-")
    assert not (densities["inference"] == "IWVI")[~latent].any()
