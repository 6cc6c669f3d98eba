"""What tables and arrays of data are checked for: tasks, labels, finite matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import TableError
from gpflow_dwp.validation import as_real_array

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["Task", "as_numbers", "check_labels", "check_matrix", "check_task"]

Task = Literal["regression", "classification"]
"""What is to be predicted: a number, or one of a few classes."""


def check_task(task: str) -> None:
    """Refuse what is not a :data:`Task`, by a :class:`TableError`."""
    if task not in get_args(Task):
        raise TableError(f"task must be 'regression' or 'classification', got {task!r}")


def check_labels(counts: npt.NDArray[np.int64], names: list[str], where: str) -> None:
    """Refuse labels that are no classification task.

    :param counts: Number of rows of each class, [C].
    :param where: What the message starts with: the file and column, or an argument.
    :raises TableError: If there is one class, one row in some class, or a class for each row.
    """
    if len(counts) == 1:
        raise TableError(f"{where} has a single class, {names[0]!r}: there is nothing to predict")
    if len(counts) == counts.sum():
        raise TableError(f"{where} has as many classes as rows ({len(counts)}): no labels to learn")
    single = np.flatnonzero(counts == 1)
    if len(single):
        raise TableError(
            f"{where} has one row only of class {names[single[0]]!r}; each class needs two"
        )


def as_numbers(name: str, values: npt.ArrayLike) -> Array:
    """Convert to float64 as :func:`as_real_array` does, with a :class:`TableError`."""
    try:
        return as_real_array(name, values)
    except ValueError as error:
        raise TableError(str(error)) from error


def check_matrix(name: str, values: npt.ArrayLike, *, may_miss: bool = False) -> Array:
    """Return numbers, [rows, columns], as a matrix of float64.

    :param may_miss: Whether NaN may stand for numbers that are missing.
    :raises TableError: If they are not finite real numbers in two axes; it names the first row at
        fault.
    """
    array = as_numbers(name, values)
    if array.ndim != 2:
        hint = f"; for one column use {name}[:, None]" if array.ndim == 1 else ""
        raise TableError(
            f"{name} must have two axes, [rows, columns], got shape {list(array.shape)}{hint}"
        )
    if 0 in array.shape:
        raise TableError(f"{name} is empty: it has shape {list(array.shape)}")
    wrong = np.argwhere(np.isinf(array) if may_miss else ~np.isfinite(array))
    if len(wrong):
        row, column = wrong[0]
        raise TableError(f"{name} holds {array[row, column]} in row {row + 1}, column {column + 1}")
    return array
