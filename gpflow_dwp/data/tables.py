"""Tables from files, as numbers: all that is wrong with one is told at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpflow_dwp.data.array_checks import Task, check_labels, check_task
from gpflow_dwp.data.encoding import (
    ColumnEncoder,
    ImputationStrategy,
    as_names,
    as_numbers,
    column_kinds,
)
from gpflow_dwp.data.reading import Format, TableFile, check_columns, read_file, refuse
from gpflow_dwp.data.table import Table, split_rows
from gpflow_dwp.exceptions import TableError

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["SplitTable", "TableToSplit", "read_table", "read_target", "read_to_split"]

_UNKNOWN = Format()
_MIN_ROWS = 10
"""Fewest rows that can be split into training and test rows and learnt from."""
_UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")


class SplitTable(NamedTuple):
    """A table of training rows and one of test rows.

    :param encoder: What made their inputs, fitted on the training rows.
    """

    train: Table
    test: Table
    encoder: ColumnEncoder


class TableToSplit(NamedTuple):
    """A table that can be used.

    :param file: It, as it was read; of rows without a target there are none.
    :param columns: The inputs.
    :param target: Name of the target.
    :param task: What the target is.
    :param Y: Targets, or class indices, [N, 1].
    :param classes: Label of each class; None for regression.
    :param options: Further arguments of :meth:`ColumnEncoder.fit`.
    :param notes: Lines that say what was found out of it.
    """

    file: TableFile
    columns: tuple[str, ...]
    target: str
    task: Task
    Y: Array
    classes: tuple[str, ...] | None
    options: dict[str, Any]
    notes: tuple[str, ...]

    def split(self, test_fraction: float, seed: int) -> SplitTable:
        """Split it: see :func:`split_rows`.

        :raises TableError: If the fraction leaves one side without rows, or without a class.
        """
        parts = split_rows(self.Y, self.task, test_fraction, seed)
        encoder, X = self._encode(parts[0])
        train, test = (self._table(encoder, X, rows) for rows in parts)
        return SplitTable(train, test, encoder)

    def whole(self) -> Table:
        """All rows as one table."""
        encoder, X = self._encode(slice(None))
        return self._table(encoder, X, slice(None))

    def _encode(self, rows: Any) -> tuple[ColumnEncoder, Array]:
        frame, where = self.file.frame, self.file.path
        encoder = ColumnEncoder.fit(frame, self.columns, rows=rows, where=where, **self.options)
        return encoder, encoder.transform(frame, where=where)

    def _table(self, encoder: ColumnEncoder, X: Array, rows: Any) -> Table:
        names = encoder.feature_names
        return Table(X[rows], self.Y[rows], names, self.target, self.task, self.classes)


def read_table(path: str | Path, target: str, task: Task = "regression") -> Table:
    """Read a table for training from a file; every column but the target is an input.

    :param path: File: see :func:`read_file`.
    :param target: Name of the column to predict.
    :param task: ``"regression"``, or ``"classification"`` for text or integer labels.
    :return: The table, in raw units.
    :raises TableError: If the file cannot be used; the message names file, columns and rows.
    :raises ImportError: If pandas is not installed.
    """
    return read_to_split(path, target, task).whole()


def read_to_split(
    path: str | Path,
    target: str,
    task: Task = "regression",
    *,
    form: Format = _UNKNOWN,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    impute: ImputationStrategy | None = None,
) -> TableToSplit:
    """Read a table for training and test, and tell all that is wrong with it.

    Rows without a target and columns without a name are left out, and said.

    :param form: How the file is written, as far as that is known.
    :param columns: Names of the inputs; none for every other column.
    :param drop: Columns that are no inputs, where ``columns`` are not named.

    What is not said here is as for :func:`read_table` and :meth:`ColumnEncoder.fit`.
    """
    check_task(task)
    file = read_file(path, form)
    header, notes = list(file.frame), list(file.notes)
    check_columns(file.path, header, [target], "target")
    named = tuple(columns or drop)
    check_columns(file.path, header, named, "input")
    for option in (named, categorical):
        if target in option:
            raise TableError(f"{file.path}: {target!r} is the target, not an input")
    unnamed = [name for name in header if _UNNAMED.fullmatch(name) and name not in columns]
    if unnamed:
        notes.append(f"{file.path}: {len(unnamed)} columns without a name are left out")
    features = tuple(
        name
        for name in header
        if name != target and name not in unnamed and (name in columns if columns else True)
        if name not in drop
    )
    if not features:
        raise TableError(f"{file.path}: {target!r} is the only column; inputs are needed too")
    without = file.frame[target].isna()
    if without.any():
        if without.all():
            raise TableError(f"{file.path}: column {target!r} is empty")
        notes.append(f"{file.path}: {int(without.sum())} rows without a target are left out")
        file = file._replace(frame=file.frame[~without])
    if len(file.frame) < _MIN_ROWS:
        raise TableError(
            f"{file.path}: {len(file.frame)} data rows; at least {_MIN_ROWS} are needed"
        )
    kinds, problems = column_kinds(
        file.frame, features, categorical=categorical, impute=impute, where=file.path
    )
    try:
        Y, classes = _read_new_target(file.frame[target], task)
    except TableError as error:
        refuse(file.path, [str(error), *problems])
        raise
    refuse(file.path, problems)
    notes += _tell_kinds(file.path, kinds, categorical)
    options = {"categorical": categorical, "impute": impute}
    return TableToSplit(file, features, target, task, Y, classes, options, tuple(notes))


def read_target(
    frame: Any, name: str, classes: Sequence[str] | None, where: object = "the table"
) -> Array:
    """Return the target of a table's rows, in raw units or as class indices, [N, 1].

    :param classes: The labels of training; None for numbers.
    :raises TableError: If a target is missing, or cannot be used.
    """
    check_columns(where, list(frame), [name], "target")
    column = frame[name]
    missing = np.flatnonzero(column.isna())
    if len(missing):
        refuse(where, [f"column {name!r} has no value in data row {missing[0] + 1}"])
    if classes is None:
        numbers, problems = as_numbers(column)
        refuse(where, problems)
        return numbers[:, None]
    labels = as_names(column)
    for row, label in enumerate(labels):
        if label not in classes:
            raise TableError(
                f"{where}: column {name!r} holds {label!r} in data row {row + 1}, which training "
                f"did not see; the classes are {', '.join(classes)}"
            )
    return np.array([[float(classes.index(label))] for label in labels])


def _read_new_target(column: Any, task: Task) -> tuple[Array, tuple[str, ...] | None]:
    """A target, [N, 1], and for classification the label of each class."""
    where = f"target column {column.name!r}"
    if task == "regression":
        hint = "; for labels use the task classification (--task classification)"
        Y, problems = as_numbers(column, hint)
        if problems:
            raise TableError(problems[0])
        if Y.min() == Y.max():
            raise TableError(f"{where} is constant ({Y[0]:g}): there is nothing to predict")
        return Y[:, None], None
    names = as_names(column)
    numbers, problems = as_numbers(column)
    if not problems and (wrong := np.flatnonzero(numbers != np.round(numbers))).size:
        cell, row = column.iloc[wrong[0]], column.index[wrong[0]] + 1
        raise TableError(
            f"{where} holds numbers that are no labels: {cell} in data row {row}; "
            "for numbers use the task regression (--task regression)"
        )
    are_whole = all(re.fullmatch(r"-?(0|[1-9]\d{0,14})", name) for name in set(names))
    classes = sorted(set(names), key=int if are_whole else None)
    indices = np.array([classes.index(name) for name in names])
    check_labels(np.bincount(indices), classes, where)
    return indices.astype(np.float64)[:, None], tuple(classes)


def _tell_kinds(path: Path, kinds: Any, categorical: Sequence[str]) -> list[str]:
    told = {
        "category": "text or Boolean, taken as categories",
        "time": "times, taken as seconds from the first",
    }
    notes = []
    for kind, what in told.items():
        names = [name for name in kinds if kinds[name] == kind and name not in categorical]
        if names:
            notes.append(f"{path}: {', '.join(names)}: {what}")
    return notes
