"""Records of an invented study: what the tests of its tables and figures have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from gpflow_dwp.lab.study.frame import results_frame
from gpflow_dwp.lab.study.results import Record

__all__ = ["PLAN", "density_cells", "finished", "frame", "invented_study", "only_row", "splits"]

# Dataset, depth, splits and models.
PLAN = (
    ("yacht", 2, (0, 1, 2), ("DGP", "GW", "A", "AB")),
    ("yacht", 5, (0, 1), ("DGP", "GW", "A", "AB")),
    ("protein", 2, (0,), ("DGP", "AB")),
)


def finished(
    dataset: str, depth: int, model: str, split: int, *, cell: dict[str, Any], **metrics: float
) -> Record:
    """The record of a finished cell; ``cell`` holds fields that are not the usual ones."""
    fields = {"dataset": dataset, "depth": depth, "model": model, "split": split}
    usual = {"num_steps": 20_000, "batch_size": None, "num_inducing": 100, "seed": 0}
    scores = {"elbo": 1.0, "elbo_standard_error": 0.01, "test_log_likelihood": -1.0, "rmse": 0.5}
    more = {"crps": 0.3, "coverage_50": 0.5, "coverage_90": 0.9, "coverage_95": 0.95}
    times = {"seconds_per_step": 0.1, "seconds_per_epoch": 0.2, "training_seconds": 2_000.0}
    provenance = {
        "versions": {"numpy": "1.26.4", "gpflow": "2.11.2"},
        "commit": "0123456",
        "dtype": "float64",
        "threads": 1,
        "machine": "a machine",
        "seconds": 2_100.0,
        "date": "2025-01-01T00:00:00+00:00",
    }
    key = " ".join(str(value) for value in [*fields.values(), *sorted(cell.items())])
    everything = {**scores, **more, **times, **metrics}
    return Record(key, {**fields, **usual, **cell}, "finished", None, everything, provenance)


def frame(*records: Record) -> pd.DataFrame:
    """The flat table of records."""
    return results_frame(records)


def splits(model: str, elbos: Iterable[float], *, dataset: str = "yacht", **more: Any) -> list[Any]:
    """A record for each split, with these bounds."""
    return [
        finished(dataset, 2, model, split, **{"cell": {}, "elbo": elbo, **more})
        for split, elbo in enumerate(elbos)
    ]


def invented_study(plan: Iterable[Any] = PLAN) -> list[Record]:
    """A record for each cell of the plan, with scores from a fixed seed."""
    rng = np.random.default_rng(0)
    records = []
    for dataset, depth, splits, models in plan:
        for split in splits:
            for index, model in enumerate(models):
                elbo, density, rmse = rng.normal([1.8, -0.3, 0.5], 0.05)
                records.append(
                    finished(
                        dataset,
                        depth,
                        model,
                        split,
                        cell={"batch_size": 1_000} if dataset == "protein" else {},
                        elbo=elbo + 0.1 * index,
                        test_log_likelihood=density,
                        rmse=rmse,
                        crps=0.6 * rmse,
                        coverage_95=rng.uniform(0.9, 1.0),
                        seconds_per_step=0.1 if model == "DGP" else 0.08,
                    )
                )
    return records


def only_row(table: pd.DataFrame, **where: Any) -> dict[str, Any]:
    """The one row of a table in which the columns have these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


def density_cells(
    model: str, exact: Iterable[float], *, samples: int = 1, **cell: Any
) -> list[Record]:
    """Finished cells of the power plant, one for each split; kernel estimates are 0.01 lower."""
    if samples > 1:
        cell["num_importance_samples"] = samples
    return [
        finished(
            "power",
            1 if model == "GP" else 2,
            model,
            split,
            cell={"protocol": "cde", "num_samples": 2 if "DWP" in model else 1, **cell},
            log_likelihood_standardised=value,
            log_likelihood_kernel=value - 0.01,
            shapiro_wilk=0.9 + 0.01 * split,
        )
        for split, value in enumerate(exact)
    ]
