"""Inputs and targets as arrays: with names, checked, split."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data.array_checks import as_numbers, check_matrix
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = [
    "Table",
    "Task",
    "as_pair",
    "as_weighted",
    "check_arrays",
    "check_weights",
    "split_rows",
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


def check_arrays(
    X: npt.ArrayLike, Y: npt.ArrayLike, *, may_miss: bool = False
) -> tuple[Array, Array]:
    """Check inputs and targets that come as arrays, and give them the shapes that models take.

    :param X: Inputs, [N, D].
    :param Y: Targets, [N, Q], or [N] for one column.
    :param may_miss: Whether NaN may stand for targets that are missing.
    :return: Both as float64, [N, D] and [N, Q].
    :raises TableError: If a value is no finite number, the shapes do not fit, or a target is
        constant or missing in all rows.
    """
    inputs, targets = check_matrix("X", X), as_numbers("Y", Y)
    targets = targets[:, None] if targets.ndim == 1 else targets
    targets = check_matrix("Y", targets, may_miss=may_miss)
    if len(inputs) != len(targets):
        raise TableError(f"X and Y must have the same rows, got {len(inputs)} and {len(targets)}")
    for column in np.flatnonzero(np.isnan(targets).all(axis=0)):
        raise TableError(f"Y is missing in all rows (column {column + 1})")
    for column in np.flatnonzero(np.nanmin(targets, axis=0) == np.nanmax(targets, axis=0)):
        raise TableError(f"Y is constant (column {column + 1}): there is nothing to predict")
    return inputs, targets


def as_pair(data: Any) -> tuple[Any, Any]:
    """Return data as a pair, or raise a :class:`ValueError`."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"data must be a pair (X, Y), got {type(data).__name__}.")
    return data[0], data[1]


def as_weighted(data: Any) -> tuple[Any, Any, Any]:
    """Return data as X, Y and weights, which are None of a pair, or raise a :class:`ValueError`."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise ValueError(
            f"data must be a pair (X, Y), or three, (X, Y, weights), got {type(data).__name__}."
        )
    return data[0], data[1], (data[2] if len(data) == 3 else None)


def check_weights(weights: npt.ArrayLike, num_rows: int) -> Array:
    """Return weights in float64, [N], that say of each of N rows how often it counts.

    :raises TableError: If they are not N numbers from 0, or all zero.
    """
    array = as_numbers("weights", weights)
    if array.shape != (num_rows,):
        raise TableError(f"weights must have shape [{num_rows}], got {list(array.shape)}")
    for row in np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))[:1]:
        raise TableError(
            f"weights must be finite and not negative, got {array[row]:g} in row {row + 1}"
        )
    if not array.any():
        raise TableError("weights must not all be zero")
    return array
