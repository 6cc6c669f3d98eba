"""Tables from CSV and Parquet files, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data.array_checks import Task, check_task
from gpflow_dwp.data.cells import Cells, read_cells
from gpflow_dwp.data.encoding import ColumnEncoder, ImputationStrategy
from gpflow_dwp.data.table import Table, split_rows
from gpflow_dwp.exceptions import TableError

__all__ = ["SplitTable", "read_split_table", "read_table", "read_target"]

_MIN_ROWS = 10
"""Fewest rows that can be split into training and test rows and learnt from."""


class SplitTable(NamedTuple):
    """A table of training rows and one of test rows.

    :param encoder: What made their inputs, fitted on the training rows.
    :param cells: All rows as they were in the file; None if they were in none.
    """

    train: Table
    test: Table
    encoder: ColumnEncoder
    cells: Cells | None = None


def read_table(path: str | Path, target: str, task: Task = "regression") -> Table:
    """Read a table for training from a file whose columns are all numeric.

    Every column but the target is an input.

    :param path: File: see :func:`read_cells`.
    :param target: Name of the column to predict.
    :param task: ``"regression"``, or ``"classification"`` for text or integer labels.
    :return: The table, in raw units.
    :raises TableError: If the file cannot be used; the message names file, column and row.
    :raises ImportError: If pandas is not installed.
    """
    check_task(task)
    cells, features = _read_for_training(path, target)
    X = np.column_stack([cells.numbers(name) for name in features])
    Y, classes = read_target(cells, target, task)
    return Table(X, Y, features, target, task, classes)


def read_split_table(
    path: str | Path,
    target: str,
    task: Task = "regression",
    *,
    test_fraction: float,
    seed: int,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    impute: ImputationStrategy | None = None,
) -> SplitTable:
    """Read a table for training and test, whose columns may hold categories and missing cells.

    What is not said here is as for :func:`read_table`, :func:`split_rows` and
    :meth:`ColumnEncoder.fit`.

    :param columns: Names of the inputs; None for every other column.
    :param drop: Columns that are no inputs, where ``columns`` is None.
    :raises ValueError: If both ``columns`` and ``drop`` are given.
    """
    check_task(task)
    if columns is not None and drop:
        raise ValueError("drop must be empty where columns are named, got both.")
    cells, features = _read_for_training(path, target)
    features = _choose(cells, features, target, columns, drop)
    cells.check_has(categorical, "categorical")
    if target in categorical:
        raise TableError(f"{cells.path}: {target!r} is the target, not an input")
    Y, classes = read_target(cells, target, task)
    parts = split_rows(Y, task, test_fraction, seed)
    encoder = ColumnEncoder.fit(
        cells.take(parts[0]), features, categorical=categorical, impute=impute
    )
    X = encoder.transform(cells)
    train, test = (
        Table(X[rows], Y[rows], encoder.feature_names, target, task, classes) for rows in parts
    )
    return SplitTable(train, test, encoder, cells)


def _choose(
    cells: Cells,
    features: tuple[str, ...],
    target: str,
    columns: Sequence[str] | None,
    drop: Sequence[str],
) -> tuple[str, ...]:
    """The inputs, in the order of the file."""
    named = drop if columns is None else columns
    cells.check_has(named, "input")
    if target in named:
        raise TableError(f"{cells.path}: {target!r} is the target, not an input")
    if columns is None:
        left = tuple(name for name in features if name not in drop)
    else:
        left = tuple(name for name in features if name in columns)
    if not left:
        raise TableError(f"{cells.path}: no column is left as an input")
    return left


def read_target(cells: Cells, target: str, task: Task) -> tuple[Array, tuple[str, ...] | None]:
    """Return a target, [N, 1], and for classification the label of each class.

    :raises TableError: If there is nothing to learn from it.
    """
    if task == "classification":
        return cells.labels(target)
    Y = cells.numbers(target, "; for labels use the task classification (--task classification)")
    if Y.min() == Y.max():
        raise TableError(
            f"{cells.path}: target column {target!r} is constant ({Y[0]:g}): "
            "there is nothing to predict"
        )
    return Y[:, None], None


def _read_for_training(path: str | Path, target: str) -> tuple[Cells, tuple[str, ...]]:
    """The cells of a file, and the names of all columns but the target."""
    cells = read_cells(path)
    cells.check_header()
    cells.check_has([target], "target")
    features = tuple(name for name in cells.header if name != target)
    if not features:
        raise TableError(f"{cells.path}: {target!r} is the only column; inputs are needed too")
    if len(cells) < _MIN_ROWS:
        raise TableError(f"{cells.path}: {len(cells)} data rows; at least {_MIN_ROWS} are needed")
    return cells, features
