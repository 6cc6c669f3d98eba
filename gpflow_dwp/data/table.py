"""Inputs and targets as arrays, from files and of examples: all that is wrong is told at once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data.encoding import (
    ColumnEncoder,
    Kind,
    as_names,
    as_numbers,
    kind_of,
    problem_of,
    problem_of_categories,
)
from gpflow_dwp.data.reading import UNKNOWN, Format, TableFile, check_columns, read_file, refuse
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import Array, are_constant

__all__ = [
    "Table",
    "TableToSplit",
    "Task",
    "load_yacht",
    "read_target",
    "read_to_split",
    "split_rows",
    "step_function",
    "varying_sine",
]

Task = Literal["regression", "classification"]
"""What is to be predicted: a number, or one of a few classes."""


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs, a target and their names.

    :param X: Inputs in raw units, [N, D].
    :param Y: Target, [N, 1]: raw units, or for classification the index 0..C-1 of the class.
    :param feature_names: Name of each column of ``X``.
    :param target_name: Name of the target.
    :param classes: Label of each class, in the order of its index; None for regression.
    """

    X: Array
    Y: Array
    feature_names: tuple[str, ...]
    target_name: str
    classes: tuple[str, ...] | None = None

    @property
    def task(self) -> Task:
        """What the target is."""
        return "regression" if self.classes is None else "classification"

    def split(self, test_fraction: float, seed: int) -> tuple[Table, Table]:
        """Split it into one of training rows and one of test rows: see :func:`split_rows`."""
        train, test = split_rows(self.Y, self.task, test_fraction, seed)
        return self.take(train), self.take(test)

    def take(self, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows, by their numbers from 0."""
        return replace(self, X=self.X[rows], Y=self.Y[rows])


def split_rows(
    Y: Array, task: Task, test_fraction: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the indices of training and test rows, chosen at random, in order.

    :param Y: Targets, [N, 1].
    :param task: For classification rows are split within each class.
    :param test_fraction: Share of test rows, between 0 and 1.
    :param seed: The same seed gives the same split.
    :raises TableError: If the fraction leaves one side without rows, or without a class.
    :raises ImportError: If scikit-learn is not installed.
    """
    selection = import_optional("sklearn.model_selection", "cli")
    try:
        if math.ceil(test_fraction * len(Y)) >= len(Y):
            raise ValueError("no row is left for training")
        labels = Y[:, 0] if task == "classification" else None
        train, test = selection.train_test_split(
            np.arange(len(Y)), test_size=test_fraction, random_state=seed, stratify=labels
        )
    except ValueError as error:
        raise TableError(f"cannot hold out {test_fraction} of {len(Y)} rows: {error}") from error
    return np.sort(train), np.sort(test)


_MIN_ROWS = 10
_UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")


class TableToSplit(NamedTuple):
    """A table that can be used: its inputs, and what they hold, and its target.

    :param file: Without the rows that have no target.
    :param Y: Targets, or class indices, [N, 1].
    """

    file: TableFile
    kinds: dict[str, Kind]
    impute: bool
    target: str
    Y: Array
    classes: tuple[str, ...] | None
    notes: tuple[str, ...]

    def split(self, test_fraction: float, seed: int) -> tuple[Table, Table, ColumnEncoder]:
        """Split it into training and test rows, and learn the encoding of the training rows."""
        task: Task = "regression" if self.classes is None else "classification"
        train, test = split_rows(self.Y, task, test_fraction, seed)
        table, encoder = self.encode(train)
        return table.take(train), table.take(test), encoder

    def encode(self, rows: npt.NDArray[np.int64] | slice) -> tuple[Table, ColumnEncoder]:
        """All rows as numbers, and the encoding, which some rows are learned from."""
        encoder = ColumnEncoder.fit(self.file.frame.iloc[rows], self.kinds, impute=self.impute)
        X = encoder.transform(self.file.frame, where=self.file.path)
        return Table(X, self.Y, encoder.feature_names, self.target, self.classes), encoder


def read_to_split(
    path: str | Path,
    target: str,
    task: Task = "regression",
    *,
    form: Format = UNKNOWN,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    impute: bool = False,
) -> TableToSplit:
    """Read a table for training and test; every column but the target is an input.

    Columns of text with few values and Boolean ones are categories, dates are seconds from the
    first. Rows without a target and columns without a name are left out.

    :param path: A CSV file with a header line, a Parquet or a Feather file.
    :param target: Name of the column to predict.
    :param task: ``"classification"`` for text or integer labels.
    :param drop: Columns that are no inputs.
    :param categorical: Inputs that hold categories though they are numbers.
    :param impute: Whether missing numbers are replaced by medians, and not refused.
    :raises TableError: If the file cannot be used; the message names file, columns and rows.
    """
    file = read_file(path, form)
    where, frame, notes = file.path, file.frame, list(file.notes)
    check_columns(where, frame, [target], "target")
    check_columns(where, frame, drop, "input")
    if target in (*drop, *categorical):
        raise TableError(f"{where}: {target!r} is the target, not an input")
    unnamed = [name for name in frame if _UNNAMED.fullmatch(name)]
    if unnamed:
        notes.append(f"{where}: columns without a name are left out: {len(unnamed)}")
    others = {target, *unnamed, *drop}
    inputs = [name for name in frame if name not in others]
    if not inputs:
        raise TableError(f"{where}: {target!r} is the only column; inputs are needed too")
    check_columns(where, frame, inputs, "input")
    check_columns(where, frame[inputs], categorical, "categorical input")
    count = int(frame[target].isna().sum())
    if count:
        notes.append(f"{where}: rows without a target are left out: {count}")
        frame = frame[frame[target].notna()]
    if len(frame) < _MIN_ROWS:
        missing = f", and {count} without a target" if count else ""
        raise TableError(
            f"{where}: {len(frame)} data rows{missing}; at least {_MIN_ROWS} are needed"
        )
    Y, classes, problem = _read_new_target(frame[target], task)
    problems, kinds = [problem], dict[str, Kind]()
    for name in inputs:
        column = frame[name]
        if column.isna().all():
            problems.append(f"column {name!r} is empty")
            continue
        kinds[name] = kind = "category" if name in categorical else kind_of(column)
        if kind == "category":
            problems.append(problem_of_categories(column))
        else:
            numbers = as_numbers(column, "1970-01-01" if kind == "time" else None)
            problems.append(problem_of(column, numbers, may_miss=impute))
    refuse(where, problems)
    for kind, what in (
        ("category", "text or Boolean, taken as categories"),
        ("time", "times, taken as seconds from the first"),
    ):
        found = [name for name in kinds if kinds[name] == kind and name not in categorical]
        if found:
            notes.append(f"{where}: {', '.join(found)}: {what}")
    file = file._replace(frame=frame)
    return TableToSplit(file, kinds, impute, target, Y, classes, tuple(notes))


def read_target(file: TableFile, name: str, classes: Sequence[str] | None) -> Array:
    """Return the target of a table's rows, in raw units or as class indices, [N, 1]."""
    check_columns(file.path, file.frame, [name], "target")
    column = file.frame[name]
    if classes is None or column.isna().any():
        numbers = as_numbers(column)
        refuse(file.path, [problem_of(column, numbers)])
        return numbers[:, None]
    labels = as_names(column)
    for row, label in enumerate(labels, start=1):
        if label not in classes:
            raise TableError(
                f"{file.path}: column {name!r} holds {label!r} in data row {row}, which training "
                f"did not see; the classes are {', '.join(classes)}"
            )
    return np.array([[float(classes.index(label))] for label in labels])


def _read_new_target(column: Any, task: Task) -> tuple[Array, tuple[str, ...] | None, str]:
    """A target, [N, 1], for classification the label of each class, and what is wrong."""
    if task == "regression":
        numbers = as_numbers(column)
        hint = "; for labels use the task classification (--task classification)"
        problem = problem_of(column, numbers, hint=hint)
        if not problem and are_constant(numbers[:, None]):
            problem = f"column {column.name!r} is constant ({numbers[0]:g}): nothing to predict"
        return numbers[:, None], None, problem
    names = as_names(column)
    is_whole = all(re.fullmatch(r"-?(0|[1-9]\d{0,14})", name) for name in {*names})
    classes = sorted({*names}, key=int if is_whole else None)
    rare, count = Counter(names).most_common()[-1]
    problem = f"column {column.name!r} holds {len(classes)} classes in {len(names)} rows, "
    problem += f"{rare!r} in {count}: two classes are needed, and two rows of each; numbers are "
    problem += "for the task regression (--task regression)"
    Y = np.array([[float(classes.index(name))] for name in names])
    return Y, tuple(classes), problem if count == 1 or len(classes) == 1 else ""


def load_yacht() -> Table:
    """Resistance of 308 sailing yachts in a towing tank, given their hulls and their speed.

    J. Gerritsma, R. Onnink and A. Versluis, "Yacht Hydrodynamics", UCI Machine Learning Repository,
    doi:10.24432/C5XG7R, under CC BY 4.0; the names of columns are ours. Inputs are ratios without a
    unit: position of the centre of buoyancy, prismatic coefficient, length to displacement, beam to
    draught, length to beam, Froude number. The target is the residuary resistance per unit weight
    of displacement.

    :return: A regression table with 308 rows and 6 inputs.
    """
    text = resources.files("gpflow_dwp.data").joinpath("yacht.csv").read_text()
    header, *lines = text.split()
    *inputs, target = header.split(",")
    rows = np.array([line.split(",") for line in lines], np.float64)
    return Table(rows[:, :-1], rows[:, -1:], tuple(inputs), target)


def step_function(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A step from 0 to 1 at x = 0: flat on both sides, with no lengthscale between.

    :param num_data: Number of points.
    :param noise: Standard deviation of the noise; 0 gives the function itself.
    :param seed: The same seed gives the same points.
    :return: Inputs, uniform on [-1, 1] and sorted, and targets; both [num_data, 1].
    """
    X, errors = _points(num_data, noise, seed)
    return X, np.where(X < 0.0, 0.0, 1.0) + errors


def varying_sine(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A smooth sine whose frequency grows from left to right, sin(6π ((x + 1) / 2)³).

    Parameters and what is returned are those of :func:`step_function`.
    """
    X, errors = _points(num_data, noise, seed)
    return X, np.sin(6.0 * np.pi * (0.5 * (X + 1.0)) ** 3) + errors


def _points(num_data: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Inputs and errors, both [num_data, 1]."""
    from gpflow_dwp.random import as_generator  # which needs TensorFlow

    rng = as_generator(seed)
    X = np.sort(rng.uniform(-1.0, 1.0, size=(num_data, 1)), axis=0)
    return X, noise * rng.normal(size=X.shape)
