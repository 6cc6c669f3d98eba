"""What the tables of a study share: checked results, numbered configurations, means with errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.lab.study.published import PRINTED_NAMES
from gpflow_dwp.lab.study.results import CELL_PLACE

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CELL_COLUMNS",
    "LARGER_IS_BETTER",
    "MARGINAL_COLUMNS",
    "METRIC_COLUMNS",
    "PROVENANCE_COLUMNS",
    "configuration_columns",
    "groups",
    "mean_and_standard_error",
    "numbered",
    "select",
    "settings",
]

CELL_COLUMNS = CELL_PLACE
METRIC_COLUMNS = (
    "elbo",
    "elbo_standard_error",
    "test_log_likelihood",
    "rmse",
    "crps",
    "coverage_50",
    "coverage_90",
    "coverage_95",
    "seconds_per_step",
    "seconds_per_epoch",
    "training_seconds",
)
MARGINAL_COLUMNS = ("log_likelihood_standardised", "log_likelihood_kernel", "shapiro_wilk")
PROVENANCE_COLUMNS = ("commit", "date", "machine", "seconds", "threads", "versions")
LARGER_IS_BETTER = {"elbo": True, "test_log_likelihood": True, "rmse": False, "crps": False}

_MODEL_ORDER = {model: index for index, model in enumerate(PRINTED_NAMES)}


def configuration_columns(results: pd.DataFrame) -> list[str]:
    """The columns that say how a cell was run: all but its place, its metrics and provenance."""
    scores = {*METRIC_COLUMNS, *MARGINAL_COLUMNS}
    others = {"key", "configuration", *CELL_COLUMNS, *scores, *PROVENANCE_COLUMNS}
    return [column for column in results.columns if column not in others]


def settings(table: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """What some columns say about each row, in words that can be compared."""
    rows = table[list(columns)].itertuples(index=False)
    return [tuple(_text(value) for value in row) for row in rows]


def numbered(results: pd.DataFrame) -> pd.DataFrame:
    """Results in the tables' order, with the number, from 1, of each cell's configuration.

    :raises ValueError: If there is no cell, a column is missing, a model is unknown, or one cell of
        one configuration is there twice.
    """
    missing = [c for c in (*CELL_COLUMNS, *METRIC_COLUMNS) if c not in results.columns]
    if missing:
        raise ValueError(f"results must have a column {', '.join(missing)}")
    if results.empty:
        raise ValueError("results must hold at least one finished cell, got none")
    unknown = sorted(set(results["model"]) - set(PRINTED_NAMES))
    if unknown:
        raise ValueError(f"model must be one of {', '.join(PRINTED_NAMES)}, got {unknown}")
    order = results["model"].map(_MODEL_ORDER)
    table = results.assign(_model=order).sort_values(
        ["dataset", "depth", "_model", "split"], kind="stable", ignore_index=True
    )
    described = settings(table, configuration_columns(results))
    numbers = {row: number for number, row in enumerate(dict.fromkeys(described), start=1)}
    table = table.drop(columns="_model")
    table["configuration"] = [numbers[row] for row in described]
    twice = table[table.duplicated([*CELL_COLUMNS, "configuration"])]
    if len(twice):
        cell = ", ".join(f"{name} {twice[name].iloc[0]}" for name in CELL_COLUMNS)
        raise ValueError(f"results must hold a cell of one configuration once, got twice: {cell}")
    return table


def groups(
    table: pd.DataFrame, columns: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows that agree in some columns, in the order in which they appear."""
    for values, rows in table.groupby(list(columns), sort=False, dropna=False):
        yield dict(zip(columns, values, strict=True)), rows


def mean_and_standard_error(values: npt.ArrayLike) -> tuple[float, float]:
    """Mean and, from two values on, its standard error: that of independent splits, else NaN.

    A value that is not finite makes both so: a cell that went wrong is not left out in silence.
    """
    array = np.asarray(values, np.float64)
    if len(array) < 2 or not np.isfinite(array).all():
        return float(array.mean()), float("nan")
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))


def select(table: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows in which the columns have the wanted values."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


def _text(value: Any) -> str:
    """A setting as text, the same whether it came from JSON or from a CSV file."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if str(value) in ("None", "nan", "<NA>") else str(value)
