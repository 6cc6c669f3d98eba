"""Tables from CSV files, with a readable message for what cannot be used.

Everything is read as text and converted column by column, so that a message can quote the cell.
Rows are counted as a user sees them: the first line below the header is data row 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data._validation import Task, check_labels, check_task
from gpflow_dwp.data.table import Table
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

__all__ = ["read_features", "read_table"]

Array = npt.NDArray[np.float64]

_MIN_ROWS = 10
"""Fewest rows that can be split into training and test rows and learnt from."""

_MISSING = ("", "?", "#n/a", "<na>", "n/a", "na", "nan", "none", "null")


def read_table(path: str | Path, target: str, task: Task = "regression") -> Table:
    """Read a table for training from a CSV file with a header line.

    Every column but the target is an input, and has to be numeric.

    :param path: CSV file, comma-separated, UTF-8.
    :param target: Name of the column to predict.
    :param task: ``"regression"``, or ``"classification"`` for text or integer labels.
    :return: The table, in raw units.
    :raises TableError: If the file cannot be used; the message names file, column and row.
    :raises ImportError: If pandas is not installed.
    """
    check_task(task)
    sheet = _read(path)
    _check_header(sheet)
    _check_has(sheet, [target], "target")
    features = tuple(name for name in sheet.header if name != target)
    if not features:
        raise TableError(f"{sheet.path}: {target!r} is the only column; inputs are needed too")
    if len(sheet.lines) < _MIN_ROWS:
        raise TableError(
            f"{sheet.path}: {len(sheet.lines)} data rows; at least {_MIN_ROWS} are needed"
        )
    X = np.column_stack([_numbers(sheet, name) for name in features])
    if task == "classification":
        Y, classes = _labels(sheet, target)
        return Table(X, Y, features, target, task, classes)
    Y = _numbers(sheet, target, hint="; for labels use the task classification")
    if Y.min() == Y.max():
        raise TableError(
            f"{sheet.path}: target column {target!r} is constant ({Y[0]:g}): "
            "there is nothing to predict"
        )
    return Table(X, Y[:, None], features, target, task)


def read_features(path: str | Path, feature_names: Sequence[str]) -> Array:
    """Read the inputs of a prediction from a CSV file with a header line.

    :param path: CSV file; columns are found by name, in any order, and others are ignored.
    :param feature_names: Columns to read.
    :return: Inputs in raw units, in the order of ``feature_names``, [N, D].
    :raises TableError: If a column is missing or the file cannot be used.
    :raises ImportError: If pandas is not installed.
    """
    sheet = _read(path)
    _check_has(sheet, feature_names, "feature")
    if not sheet.lines:
        raise TableError(f"{sheet.path}: no data rows below the header")
    return np.column_stack([_numbers(sheet, name) for name in feature_names])


class _Sheet(NamedTuple):
    """Cells as text. ``lines`` holds each data row's line in the file, from 1."""

    path: Path
    header: list[str]
    cells: Any
    lines: list[int]

    def column(self, name: str) -> Any:
        return self.cells.iloc[:, self.header.index(name)]

    def place(self, row: int) -> str:
        return f"data row {row + 1} (line {self.lines[row]})"


def _read(path: str | Path) -> _Sheet:
    pandas = import_optional("pandas", "cli")
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path}: no such file")
    if path.is_dir():
        raise TableError(f"{path}: a directory, not a CSV file")
    try:
        frame = pandas.read_csv(
            path,
            header=None,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
        )
    except pandas.errors.EmptyDataError:
        raise TableError(f"{path}: the file is empty") from None
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not a text file in UTF-8 (byte {error.start})") from error
    except (OSError, EOFError, pandas.errors.ParserError) as error:
        raise TableError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    frame = frame.fillna("").apply(lambda column: column.str.strip())
    frame = frame[(frame != "").any(axis=1)]
    if frame.empty:
        raise TableError(f"{path}: the file is empty")
    header = [str(name) for name in frame.iloc[0]]
    return _Sheet(path, header, frame.iloc[1:], [int(i) + 1 for i in frame.index[1:]])


def _check_header(sheet: _Sheet) -> None:
    if all(_is_number(name) for name in sheet.header):
        raise TableError(f"{sheet.path}: the first line holds numbers; a header line is needed")
    for position, name in enumerate(sheet.header):
        if not name:
            raise TableError(
                f"{sheet.path}: column {position + 1} has no name; name it, or remove it if it "
                "is only a row number"
            )
        if name in sheet.header[:position]:
            raise TableError(f"{sheet.path}: two columns are named {name!r}")


def _check_has(sheet: _Sheet, names: Sequence[str], role: str) -> None:
    missing = [name for name in names if name not in sheet.header]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        message = f"{sheet.path}: no {role} column {listed}; the columns are "
        message += ", ".join(repr(name) for name in sheet.header)
        close = get_close_matches(missing[0], [name for name in sheet.header if name], n=1)
        if close:
            message += f"; did you mean {close[0]!r}?"
        elif len(sheet.header) == 1 and any(mark in sheet.header[0] for mark in ";\t|"):
            message += "; columns must be separated by commas"
        raise TableError(message)
    for name in names:
        if sheet.header.count(name) > 1:
            raise TableError(f"{sheet.path}: two columns are named {name!r}")


def _numbers(sheet: _Sheet, name: str, hint: str = "") -> Array:
    """A column as finite numbers [N]."""
    _check_complete(sheet, name)
    numbers = np.empty(len(sheet.lines))
    for row, cell in enumerate(sheet.column(name)):
        numbers[row] = float(cell) if _is_number(cell) else np.nan
        if not np.isfinite(numbers[row]):
            wrong, place = f"{sheet.path}: column {name!r} is not", sheet.place(row)
            if _is_number(cell):
                raise TableError(f"{wrong} finite: {cell} in {place}")
            raise TableError(f"{wrong} numeric: {cell!r} in {place}{hint}")
    return numbers


def _labels(sheet: _Sheet, name: str) -> tuple[Array, tuple[str, ...]]:
    """A column as class indices [N, 1], and the label of each class in sorted order."""
    _check_complete(sheet, name)
    labels = [str(cell) for cell in sheet.column(name)]
    where = f"{sheet.path}: target column {name!r}"
    if all(_is_number(label) for label in labels):
        numbers = np.array([float(label) for label in labels])
        for row in np.flatnonzero(~(numbers == np.round(numbers))):
            raise TableError(
                f"{where} holds numbers that are no labels: {labels[row]} in {sheet.place(row)}; "
                "for numbers use the task regression"
            )
        values, indices = np.unique(numbers, return_inverse=True)
        names = [f"{value:.0f}" for value in values]
    else:
        texts, indices = np.unique(labels, return_inverse=True)
        names = [str(text) for text in texts]
    check_labels(np.bincount(indices), names, where)
    return indices.astype(np.float64)[:, None], tuple(names)


def _check_complete(sheet: _Sheet, name: str) -> None:
    missing = np.flatnonzero(sheet.column(name).str.lower().isin(_MISSING))
    if len(missing) == len(sheet.lines):
        raise TableError(f"{sheet.path}: column {name!r} is empty")
    if len(missing):
        more = f", and in {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TableError(
            f"{sheet.path}: column {name!r} has no value in {sheet.place(missing[0])}{more}"
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
