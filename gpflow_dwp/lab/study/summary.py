"""The numbers of a study: its cells as one table, their means over splits, and what was printed.

All functions but the first two take the flat table of :func:`results_frame`. Means are taken over
the splits of cells of one configuration only; a table that holds several numbers them, and
:func:`configurations` says which is which.

A standard error is the standard deviation over splits (divisor: splits less one) over the root of
their number. From few splits it is rough: from 5 its own relative error is about 35%, from 3, 50%.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpflow_dwp.lab.study._grouping import (
    CELL_COLUMNS,
    LARGER_IS_BETTER,
    MARGINAL_COLUMNS,
    METRIC_COLUMNS,
    PROVENANCE_COLUMNS,
    configuration_columns,
    groups,
    mean_and_standard_error,
    numbered,
    select,
)
from gpflow_dwp.lab.study.published import (
    LARGEST_ROUNDING,
    PAPERS,
    PAPERS_WITH_RUNTIMES,
    published_runtimes,
    published_scores,
)
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd

    from gpflow_dwp.lab.study.results import Record

__all__ = [
    "AGREEMENT",
    "calibration_table",
    "configurations",
    "read_results_table",
    "results_frame",
    "runtime_table",
    "score_table",
]

# Combined standard errors within which a measured and a printed mean are said to agree.
AGREEMENT = 3.0

_PLACE = ("dataset", "depth", "model", "configuration")
_CALIBRATION = ("crps", "coverage_50", "coverage_90", "coverage_95")


def results_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row for each finished cell; failed ones are left out.

    Written with ``to_csv(path, index=False)`` it is what :func:`read_results_table` reads.

    :param records: Records of a study.
    :return: Columns: ``key``; ``dataset``, ``depth``, ``model`` and ``split``; the fields of the
        cell's configuration; the metrics, and those of marginals where there are any; ``commit``,
        ``date``, ``machine``, ``seconds``, ``threads`` and ``versions`` ("gpflow 2.11.2; numpy
        1.26.4"). Rows in the order of dataset, depth, model and split. Without a finished cell, a
        table with ``key`` only and no row.
    :raises ValueError: If a record is of a comparison, not of a study.
    :raises ImportError: If pandas is not installed.
    """
    pandas = import_optional("pandas", "cli")
    records = list(records)
    if any(set(CELL_COLUMNS) - set(record.cell) for record in records):
        raise ValueError("records must be of a study, got those of a comparison")
    rows = [_row(record) for record in records if record.status == "finished"]
    frame = pandas.DataFrame(rows, columns=None if rows else ["key"])
    if not rows:
        return frame
    own = configuration_columns(frame)
    frame[own] = frame[own].convert_dtypes()  # whole numbers stay so where one is missing
    return numbered(frame).drop(columns="configuration")


def read_results_table(path: str | PathLike[str]) -> pd.DataFrame:
    """Read the CSV file of a :func:`results_frame`.

    :param path: The file.
    :return: The table, as :func:`results_frame` gives it.
    :raises ValueError: If it is no such table.
    :raises OSError: If the file cannot be read.
    :raises ImportError: If pandas is not installed.
    """
    text = {"key", "dataset", "model", *PROVENANCE_COLUMNS} - {"seconds", "threads"}
    try:
        frame = import_optional("pandas", "cli").read_csv(
            path, dtype=dict.fromkeys(text, str), float_precision="round_trip"
        )
        frame = frame.loc[:, ~frame.columns.str.startswith("Unnamed:")]  # an index column
        own = configuration_columns(frame)
        frame[own] = frame[own].convert_dtypes()
        return numbered(frame).drop(columns="configuration")
    except ValueError as error:
        raise ValueError(f"{path} is not the table of a study's results: {error}") from error


def configurations(results: pd.DataFrame) -> pd.DataFrame:
    """The configurations of a study's cells.

    :param results: The flat table.
    :return: One row for each, with its number, its fields, the ``datasets`` that it was used for
        and how many ``cells`` it has.
    :raises ValueError: If the table is empty or not such a table.
    """
    pandas = import_optional("pandas", "cli")
    own = configuration_columns(results)
    return pandas.DataFrame(
        {
            **place,
            **{column: rows[column].iloc[0] for column in own},
            "datasets": " ".join(dict.fromkeys(rows["dataset"])),
            "cells": len(rows),
        }
        for place, rows in groups(numbered(results), ["configuration"])
    )


def score_table(results: pd.DataFrame) -> pd.DataFrame:
    """The papers' scores, each mean over splits beside the printed ones.

    A difference is measured minus printed. It is also given in combined standard errors,
    sqrt(measured² + printed²), where a printed standard error below half a unit of its last
    decimal, which prints as 0.00, counts as that half unit, 0.005. What rounding does to the
    printed mean, at most 0.005 as well, is in neither.

    :param results: The flat table.
    :return: One row for each metric, dataset, depth, model and configuration: ``splits``,
        ``commits`` (how many versions of the code the cells are of, where that is known), ``mean``,
        ``standard_error`` (NaN from one split), and for ``P`` each of the papers ``P_mean``,
        ``P_standard_error``, ``P_difference``, ``P_difference_in_se`` and ``P_verdict``: "within"
        three combined standard errors, "better", "worse", "one split" or "not finite" where there
        is no standard error, or nothing where nothing is printed. The ELBO is per training datum,
        in nats; the others are in raw units.
    :raises ValueError: If the table is empty or not such a table.
    """
    table, printed = numbered(results), published_scores()
    rows = []
    for metric in dict.fromkeys(printed["metric"]):
        for place, cells in groups(table, _PLACE):
            where = {name: place[name] for name in ("dataset", "depth", "model")}
            mean, error = mean_and_standard_error(cells[metric])
            commits = cells["commit"].nunique() if "commit" in cells else 0
            row = {"metric": metric, **place, "splits": len(cells), "commits": commits}
            row |= {"mean": mean, "standard_error": error}
            for paper in PAPERS:
                found = select(printed, paper=paper, metric=metric, **where)
                row |= _beside_print(metric, paper, mean, error, found)
            rows.append(row)
    return import_optional("pandas", "cli").DataFrame(rows)


def calibration_table(results: pd.DataFrame) -> pd.DataFrame:
    """Continuous ranked probability score and coverage of central intervals, means over splits.

    :param results: The flat table.
    :return: One row for each dataset, depth, model and configuration: ``splits``, and for each of
        ``crps`` (raw units, lower is better), ``coverage_50``, ``coverage_90`` and ``coverage_95``
        (shares of test points) its mean and, with ``_standard_error``, that one's error.
    :raises ValueError: If the table is empty or not such a table.
    """
    rows = []
    for place, cells in groups(numbered(results), _PLACE):
        row = {**place, "splits": len(cells)}
        for metric in _CALIBRATION:
            row[metric], row[f"{metric}_standard_error"] = mean_and_standard_error(cells[metric])
        rows.append(row)
    return import_optional("pandas", "cli").DataFrame(rows)


def runtime_table(results: pd.DataFrame) -> pd.DataFrame:
    """Times, averaged over the splits that ran on one kind of machine, beside the printed ones.

    :param results: The flat table; without columns ``machine`` and ``threads`` all cells are taken
        to have run on one.
    :return: One row for each dataset, depth, model, configuration, machine and number of threads:
        ``splits``, mean ``seconds_per_step``, ``seconds_per_epoch`` and ``training_seconds``;
        ``step_over_dgp``, the time of a step over that of the DGP on the same split, and the median
        of that over the ``splits_with_dgp``; and for ``P`` each of the papers that print times
        ``P_seconds_per_epoch`` and ``P_over_dgp``, for its own machines. What else the machine did
        at the time is in all of them.
    :raises ValueError: If the table is empty or not such a table.
    """
    kind = [column for column in ("machine", "threads") if column in results.columns]
    times = ["seconds_per_step", "seconds_per_epoch", "training_seconds"]
    printed, rows = published_runtimes(), []
    for place, block in groups(numbered(results), ["dataset", "depth", "configuration", *kind]):
        where = {name: place[name] for name in ("dataset", "depth")}
        dgp = select(block, model="DGP").set_index("split")["seconds_per_step"]
        for model, cells in block.groupby("model", sort=False):
            row = {**where, "model": model, **place, "splits": len(cells)}
            row |= {name: float(cells[name].mean()) for name in times}
            ratios = (cells.set_index("split")["seconds_per_step"] / dgp).dropna()
            row |= {"step_over_dgp": float(ratios.median()), "splits_with_dgp": len(ratios)}
            for paper in PAPERS_WITH_RUNTIMES:
                there = select(printed, paper=paper, **where)
                seconds = _only(select(there, model=model), "seconds_per_epoch")
                row[f"{paper}_seconds_per_epoch"] = seconds
                row[f"{paper}_over_dgp"] = seconds / _only(
                    select(there, model="DGP"), "seconds_per_epoch"
                )
            rows.append(row)
    return import_optional("pandas", "cli").DataFrame(rows)


def _row(record: Record) -> dict[str, Any]:
    cell, metrics, provenance = dict(record.cell), record.metrics or {}, dict(record.provenance)
    versions = provenance.get("versions") or {}
    provenance["versions"] = "; ".join(f"{name} {versions[name]}" for name in sorted(versions))
    return {
        "key": record.key,
        **{name: cell.pop(name) for name in CELL_COLUMNS},
        **{name: _flat(value) for name, value in cell.items()},
        **{name: _number(metrics.get(name)) for name in METRIC_COLUMNS},
        **{name: float(metrics[name]) for name in MARGINAL_COLUMNS if name in metrics},
        **{name: provenance.get(name) for name in PROVENANCE_COLUMNS},
    }


def _flat(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list, tuple)) else value


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _only(found: pd.DataFrame, column: str) -> float:
    """The number in a table of one row; NaN if there is no row."""
    return float(found[column].iloc[0]) if len(found) else float("nan")


def _beside_print(
    metric: str, paper: str, mean: float, error: float, found: pd.DataFrame
) -> dict[str, Any]:
    printed_mean, printed_error = _only(found, "mean"), _only(found, "standard_error")
    difference = mean - printed_mean
    in_errors = difference / float(np.hypot(error, np.maximum(printed_error, LARGEST_ROUNDING)))
    if not len(found):
        verdict = ""
    elif np.isnan(error):
        verdict = "one split" if np.isfinite(mean) else "not finite"
    elif abs(in_errors) <= AGREEMENT:
        verdict = "within"
    else:
        verdict = "better" if (in_errors > 0.0) == LARGER_IS_BETTER[metric] else "worse"
    return {
        f"{paper}_mean": printed_mean,
        f"{paper}_standard_error": printed_error,
        f"{paper}_difference": difference,
        f"{paper}_difference_in_se": in_errors,
        f"{paper}_verdict": verdict,
    }
