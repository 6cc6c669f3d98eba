"""The finished cells of a study as one flat table, with a number for each configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import pandas as pd

from gpflow_dwp.lab.exact_csv import read_exact_csv
from gpflow_dwp.lab.study.published import PRINTED_NAMES
from gpflow_dwp.lab.study.results import CELL_PLACE, Record

__all__ = [
    "PROVENANCE_COLUMNS",
    "alike",
    "configuration_columns",
    "configurations",
    "differing_configurations",
    "numbered",
    "read_results_table",
    "results_frame",
    "sort_key",
]

_METRICS = (
    *("elbo", "elbo_standard_error", "test_log_likelihood", "rmse", "crps"),
    *("coverage_50", "coverage_90", "coverage_95"),
    *("seconds_per_step", "seconds_per_epoch", "training_seconds"),
)
_MARGINALS = ("log_likelihood_standardised", "log_likelihood_kernel", "shapiro_wilk")
PROVENANCE_COLUMNS = ("commit", "date", "machine", "seconds", "threads", "versions")
_NOT_CONFIGURATION = {
    *("key", "configuration"),
    *(*CELL_PLACE, *_METRICS, *_MARGINALS, *PROVENANCE_COLUMNS),
}


def results_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row for each finished cell; failed ones are left out.

    Written with ``to_csv(path, index=False)`` it is what :func:`read_results_table` reads.

    :return: Columns: ``key``; ``dataset``, ``depth``, ``model`` and ``split``; the fields of the
        cell's configuration; the metrics, and those of marginals where there are any; ``commit``,
        ``date``, ``machine``, ``seconds``, ``threads`` and ``versions`` ("gpflow 2.11.2; numpy
        1.26.4"). Rows in the order of dataset, depth, model and split. Without a finished cell, a
        table with ``key`` only and no row.
    :raises ValueError: If a record is of a comparison, not of a study.
    """
    records = list(records)
    if any(set(CELL_PLACE) - set(record.cell) for record in records):
        raise ValueError("records must be of a study, got those of a comparison")
    rows = [_row(record) for record in records if record.status == "finished"]
    return _checked(pd.DataFrame(rows)) if rows else pd.DataFrame(columns=["key"])


def read_results_table(path: str | PathLike[str]) -> pd.DataFrame:
    """Read the CSV file of a :func:`results_frame`.

    :raises ValueError: If it is no such table.
    :raises OSError: If the file cannot be read.
    """
    text = {"key", "dataset", "model", *PROVENANCE_COLUMNS} - {"seconds", "threads"}
    try:
        frame = read_exact_csv(path, dtype=dict.fromkeys(text, str))
        return _checked(frame.loc[:, ~frame.columns.str.startswith("Unnamed:")])  # an index column
    except ValueError as error:
        raise ValueError(f"{path} is not the table of a study's results: {error}") from error


def configurations(results: pd.DataFrame) -> pd.DataFrame:
    """The configurations of a study's cells.

    :param results: The flat table of :func:`results_frame`.
    :return: One row for each, with its number, its fields, the ``datasets`` that it was used for
        and how many ``cells`` it has.
    :raises ValueError: If the table is empty or not such a table.
    """
    table = numbered(results)
    own = configuration_columns(results)
    found = table.drop_duplicates("configuration")[["configuration", *own]]
    cells = table.groupby("configuration").agg(
        datasets=("dataset", lambda names: " ".join(names.unique())), cells=("dataset", "size")
    )
    return found.merge(cells.reset_index(), on="configuration")


def differing_configurations(results: pd.DataFrame) -> pd.DataFrame:
    """The configurations by what differs between them, to be shown: what has no value is empty."""
    table = configurations(results)
    return table.loc[:, table.nunique(dropna=False) > 1].astype(object).fillna("")


def configuration_columns(results: pd.DataFrame) -> list[str]:
    """The columns that say how a cell was run: all but its place, its metrics and provenance."""
    return [column for column in results.columns if column not in _NOT_CONFIGURATION]


def numbered(results: pd.DataFrame) -> pd.DataFrame:
    """Results in the tables' order, with the number, from 1, of each cell's configuration.

    :raises ValueError: If there is no cell, a column is missing, a model is unknown, or one cell of
        one configuration is there twice.
    """
    missing = [c for c in (*CELL_PLACE, *_METRICS) if c not in results.columns]
    if missing:
        raise ValueError(f"results must have a column {', '.join(missing)}")
    if results.empty:
        raise ValueError("results must hold at least one finished cell, got none")
    unknown = sorted(set(results["model"]) - set(PRINTED_NAMES))
    if unknown:
        raise ValueError(f"model must be one of {', '.join(PRINTED_NAMES)}, got {unknown}")
    order = sort_key(model=PRINTED_NAMES)
    table = results.sort_values([*CELL_PLACE], key=order, kind="stable", ignore_index=True)
    table = table.assign(configuration=alike(table, configuration_columns(table)))
    twice = table[table.duplicated([*CELL_PLACE, "configuration"])]
    if len(twice):
        cell = ", ".join(f"{name} {twice[name].iloc[0]}" for name in CELL_PLACE)
        raise ValueError(f"results must hold a cell of one configuration once, got twice: {cell}")
    return table


def alike(table: pd.DataFrame, columns: Sequence[str]) -> Any:
    """A number for each row, from 1, the same for rows that some columns say the same of."""
    rows = table[list(columns)].itertuples(index=False)
    texts = pd.Series([tuple(map(_text, row)) for row in rows], dtype=object)
    return pd.factorize(texts.to_numpy())[0] + 1


def sort_key(**orders: Iterable[str]) -> Callable[[pd.Series], pd.Series]:
    """What to sort columns by, where an order of names is given; other names come last."""
    places = {column: {name: f"{i:03}" for i, name in enumerate(o)} for column, o in orders.items()}

    def key(column: pd.Series) -> pd.Series:
        order = places.get(str(column.name))
        return column.map(lambda n: order.get(n, f"999 {n}")) if order is not None else column

    return key


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    own = configuration_columns(frame)
    frame = frame.assign(
        **frame[own].convert_dtypes()
    )  # whole numbers stay so where one is missing
    return numbered(frame).drop(columns="configuration")


def _row(record: Record) -> dict[str, Any]:
    cell, metrics, provenance = dict(record.cell), record.metrics or {}, dict(record.provenance)
    versions = provenance.get("versions") or {}
    provenance["versions"] = "; ".join(f"{name} {versions[name]}" for name in sorted(versions))
    if "options" in cell:
        cell["options"] = json.dumps(cell["options"], sort_keys=True) if cell["options"] else None
    numbers = {name: metrics.get(name) for name in _METRICS}
    numbers |= {name: metrics[name] for name in _MARGINALS if name in metrics}
    return {
        "key": record.key,
        **{name: cell.pop(name) for name in CELL_PLACE},
        **cell,
        **{
            name: float("nan") if value is None else float(value) for name, value in numbers.items()
        },
        **{name: provenance.get(name) for name in PROVENANCE_COLUMNS},
    }


def _text(value: Any) -> str:
    """A setting as text, the same whether it came from JSON or from a CSV file."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if str(value) in ("None", "nan", "<NA>") else str(value)
