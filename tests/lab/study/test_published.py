"""The printed numbers: single ones as the papers have them, and what holds among all of them."""

from __future__ import annotations

import numpy as np
import pytest
from study_results import only_row

from gpflow_dwp.lab.study.published import (
    LARGEST_ROUNDING,
    published_densities,
    published_differences,
    published_runtimes,
    published_scores,
)

DATASETS = ["boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"]


@pytest.mark.parametrize(
    ("paper", "dataset", "depth", "metric", "model", "mean", "error"),
    [
        # Ober, Anson, Milsom and Aitchison (2023): Tables 3, 5 and 6, and 1 for depth 5.
        ("improved", "yacht", 2, "elbo", "GW", 2.02, 0.01),
        ("improved", "yacht", 5, "elbo", "A", 1.79, 0.02),
        ("improved", "naval", 5, "elbo", "AB", 3.63, 0.22),
        ("improved", "boston", 2, "elbo", "DGP", -0.38, 0.01),
        ("improved", "protein", 4, "elbo", "A", -1.00, 0.00),
        ("improved", "yacht", 3, "test_log_likelihood", "AB", 0.14, 0.06),
        ("improved", "protein", 2, "test_log_likelihood", "DGP", -2.82, 0.00),
        ("improved", "kin8nm", 5, "test_log_likelihood", "GW", 1.40, 0.01),
        ("improved", "concrete", 5, "rmse", "AB", 5.24, 0.11),
        ("improved", "yacht", 2, "rmse", "DGP", 0.41, 0.04),
        # Ober and Aitchison (2021): Tables 2 and 3.
        ("original", "yacht", 5, "elbo", "GW", 1.65, 0.01),
        ("original", "yacht", 5, "elbo", "DGP", 1.37, 0.03),
        ("original", "naval", 3, "test_log_likelihood", "DGP", 8.13, 0.14),
        ("original", "protein", 4, "test_log_likelihood", "GW", -2.73, 0.01),
        # Louizos and Welling (2016): Table 1.
        ("vmg", "boston", 2, "rmse", "VMG", 2.81, 0.11),
        ("vmg", "yacht", 2, "test_log_likelihood", "VMG", -1.29, 0.02),
        ("vmg", "protein", 2, "rmse", "Dropout", 4.36, 0.04),
    ],
)
def test_scores_as_printed(
    paper: str, dataset: str, depth: int, metric: str, model: str, mean: float, error: float
) -> None:
    place = {"paper": paper, "dataset": dataset, "depth": depth, "metric": metric}
    row = only_row(published_scores(), **place, model=model)
    assert (row["mean"], row["standard_error"]) == (mean, error)
    assert row["splits"] == (5 if dataset == "protein" else 20)


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
    assert sorted(scores["dataset"].unique()) == DATASETS
    assert sorted(scores["depth"].unique()) == [2, 3, 4, 5]
    assert not scores.isna().any().any()


@pytest.mark.parametrize(
    ("dataset", "depth", "model", "baseline", "mean", "error"),
    [
        # Ober, Anson, Milsom and Aitchison (2023), Table 4.
        ("yacht", 5, "A", "GW", 0.20, 0.03),
        ("yacht", 4, "A", "AB", 0.02, 0.01),
        ("naval", 3, "AB", "GW", 0.28, 0.13),
        ("naval", 2, "A", "AB", -0.04, 0.16),
    ],
)
def test_differences_as_printed(
    dataset: str, depth: int, model: str, baseline: str, mean: float, error: float
) -> None:
    place = {"dataset": dataset, "depth": depth, "model": model, "baseline": baseline}
    row = only_row(published_differences(), **place)
    assert (row["mean"], row["standard_error"]) == (mean, error)


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


@pytest.mark.parametrize(
    ("paper", "dataset", "depth", "model", "seconds"),
    [
        # Ober, Anson, Milsom and Aitchison (2023), Table 2.
        ("improved", "boston", 2, "DGP", 0.463),
        ("improved", "boston", 5, "A", 0.373),
        ("improved", "protein", 5, "AB", 1.839),
        # Ober and Aitchison (2021), Table 4.
        ("original", "boston", 5, "DGP", 0.668),
        ("original", "protein", 2, "GW", 0.942),
    ],
)
def test_runtimes_as_printed(
    paper: str, dataset: str, depth: int, model: str, seconds: float
) -> None:
    runtimes = published_runtimes()
    assert len(runtimes) == 16 + 8
    place = ["paper", "dataset", "depth", "model"]
    assert runtimes.set_index(place).loc[(paper, dataset, depth, model), "seconds_per_epoch"] == (
        seconds
    )


@pytest.mark.parametrize(
    ("dataset", "model", "inference", "mean", "error"),
    [
        # Salimbeni, Dutordoir, Hensman and Deisenroth (2019), Table 1.
        ("power", "GP", "VI", -0.65, 0.04),
        ("power", "LV-GP-GP", "IWVI", -0.28, 0.05),
        ("energy", "LV-GP-GP-GP", "IWVI", 2.28, 0.01),
        ("houseelectric", "LV-GP-GP-GP", "VI", 1.77, 0.06),
    ],
)
def test_densities_as_printed(
    dataset: str, model: str, inference: str, mean: float, error: float
) -> None:
    row = only_row(published_densities(), dataset=dataset, model=model, inference=inference)
    assert (row["mean"], row["standard_error"], row["splits"]) == (mean, error, 5)


def test_every_density_is_there_once() -> None:
    densities = published_densities()
    assert len(densities) == 41 * 9
    assert not densities.duplicated(["dataset", "model", "inference"]).any()
    assert not densities.isna().any().any()
    assert set(DATASETS) <= set(densities["dataset"])
    latent = densities["model"].str.startswith("LV-")
    assert not (densities["inference"] == "IWVI")[~latent].any()
