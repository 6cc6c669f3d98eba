"""Conditional density estimation: log-likelihoods of standardised targets beside the printed ones.

Printed are those of Salimbeni, Dutordoir, Hensman and Deisenroth (2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpflow_dwp.lab.study._grouping import (
    configuration_columns,
    groups,
    mean_and_standard_error,
    numbered,
    select,
    settings,
)
from gpflow_dwp.lab.study.published import LARGEST_ROUNDING, published_densities
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["density_table"]

# A model without latent variables has no importance samples, and a deep Wishart process more draws.
_OF_THE_MODEL = {"inference", "num_importance_samples", "num_samples", "options"}

_COLUMNS = ("dataset", "depth", "model", "inference", "configuration", "splits")
_KERNEL, _EXACT = "log_likelihood_kernel", "log_likelihood_standardised"


def density_table(results: pd.DataFrame) -> pd.DataFrame:
    """Log-likelihoods of standardised test targets, means over splits.

    The printed numbers are kernel density estimates, which smooth; so are the measured ones that
    stand beside them. Differences between measured models are of the exact values, and paired.

    :param results: The flat table of :func:`~gpflow_dwp.lab.study.summary.results_frame`.
    :return: One row for each dataset, depth, model and configuration that has such scores:
        ``inference`` ("VI", or "IWVI" with more than one importance sample), ``splits``; for
        ``kernel`` and ``exact`` the mean (nats per row) and with ``_standard_error`` its error;
        ``shapiro_wilk`` (mean over splits); ``printed_mean``, ``printed_standard_error``,
        ``difference`` (kernel minus printed) and ``difference_in_se``, that in combined standard
        errors; ``over_gp`` and ``over_vi``, the mean difference from the single-layer GP and from
        the same model by VI, over common splits of cells that are otherwise alike, and their
        standard errors. NaN where something is not there.
    :raises ValueError: If the table is empty or not such a table.
    """
    table = numbered(results)
    table = table[table[_EXACT].notna()] if _EXACT in table else table.iloc[:0]
    table = table.assign(inference=_inference(table))
    printed = published_densities()
    rows = []
    for place, cells in groups(table, ["dataset", "depth", "model", "inference", "configuration"]):
        row: dict[str, Any] = {**place, "splits": len(cells)}
        for name, column in (("kernel", _KERNEL), ("exact", _EXACT)):
            row[name], row[f"{name}_standard_error"] = mean_and_standard_error(cells[column])
        row["shapiro_wilk"] = float(cells["shapiro_wilk"].mean())
        where = {name: place[name] for name in ("dataset", "model", "inference")}
        row |= _beside_print(row, select(printed, **where))
        alike = _alike(table, cells)
        row |= _paired("over_gp", cells, select(alike, model="GP", inference="VI"))
        same = {name: place[name] for name in ("model", "depth")}
        row |= _paired("over_vi", cells, select(alike, inference="VI", **same))
        rows.append(row)
    columns = None if rows else list(_COLUMNS)
    return import_optional("pandas", "cli").DataFrame(rows, columns=columns)


def _inference(table: pd.DataFrame) -> list[str]:
    if "num_importance_samples" not in table:
        return ["VI"] * len(table)
    return ["IWVI" if number > 1 else "VI" for number in table["num_importance_samples"].fillna(1)]


def _beside_print(row: dict[str, Any], found: pd.DataFrame) -> dict[str, float]:
    names = ("mean", "standard_error")
    mean, error = (float(found[name].iloc[0]) if len(found) else float("nan") for name in names)
    difference = row["kernel"] - mean
    combined = np.hypot(row["kernel_standard_error"], np.maximum(error, LARGEST_ROUNDING))
    return {
        "printed_mean": mean,
        "printed_standard_error": error,
        "difference": difference,
        "difference_in_se": difference / float(combined),
    }


def _alike(table: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of the same data that were run in the same way, whatever the model."""
    others = [name for name in configuration_columns(table) if name not in _OF_THE_MODEL]
    columns = ["dataset", *others]
    (wanted,) = set(settings(cells, columns))
    return table[[row == wanted for row in settings(table, columns)]]


def _paired(name: str, cells: pd.DataFrame, baseline: pd.DataFrame) -> dict[str, float]:
    """The mean difference over common splits; NaN if there are none, or for the baseline itself."""
    mean, error = float("nan"), float("nan")
    ours, theirs = (rows.set_index("split")[_EXACT] for rows in (cells, baseline))
    common = ours.index.intersection(theirs.index)
    if len(common) and theirs.index.is_unique and not cells["key"].isin(baseline["key"]).any():
        mean, error = mean_and_standard_error(ours[common] - theirs[common])
    return {name: mean, f"{name}_standard_error": error}
