"""A table of data that is known to be usable: finite numbers, a target, names."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data.array_checks import (
    Task,
    as_numbers,
    check_labels,
    check_matrix,
    check_task,
)
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
    "split_table",
]


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs, a target and their names.

    :param X: Inputs in raw units, [N, D].
    :param Y: Target, [N, 1]: raw units, or for classification the index 0..C-1 of the class.
    :param feature_names: Name of each column of ``X``.
    :param target_name: Name of the target.
    :param task: ``"regression"`` or ``"classification"``.
    :param classes: Label of each class, in the order of its index; ``None`` for regression.
    :raises TableError: If the parts do not fit together.
    """

    X: Array
    Y: Array
    feature_names: tuple[str, ...]
    target_name: str
    task: Task = "regression"
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_task(self.task)
        X, Y = check_matrix("X", self.X), check_matrix("Y", self.Y)
        _check_rows(X, Y)
        if Y.shape[1] != 1:
            raise TableError(f"Y must have one column, got shape {list(Y.shape)}")
        if len(self.feature_names) != X.shape[1]:
            raise TableError(f"{len(self.feature_names)} feature names for {X.shape[1]} columns")
        if (self.classes is None) != (self.task == "regression"):
            raise TableError("classes are for classification, and classification needs them")
        if self.classes is not None and not np.isin(Y, np.arange(len(self.classes))).all():
            raise TableError(f"Y must hold class indices 0 to {len(self.classes) - 1}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "Y", Y)


def check_arrays(
    X: npt.ArrayLike, Y: npt.ArrayLike, *, task: Task = "regression", may_miss: bool = False
) -> tuple[Array, Array]:
    """Check inputs and targets that come as arrays, and give them the shapes that models take.

    :param X: Inputs, [N, D].
    :param Y: Targets, [N, Q], or [N] for one column.
    :param task: ``"regression"``, or ``"classification"`` for labels 0..C-1.
    :param may_miss: Whether NaN may stand for targets that are missing.
    :return: Both as float64, [N, D] and [N, Q].
    :raises TableError: If a value is no finite number, the shapes do not fit, a target is
        constant or missing in all rows, or the labels do not fit the task.
    """
    check_task(task)
    inputs = check_matrix("X", X)
    targets = as_numbers("Y", Y)
    targets = targets[:, None] if targets.ndim == 1 else targets
    targets = check_matrix("Y", targets, may_miss=may_miss)
    _check_rows(inputs, targets)
    if task == "classification":
        labels = np.unique(targets)
        if not np.array_equal(labels, np.arange(len(labels))):
            shown = ", ".join(f"{label:g}" for label in labels[:5])
            raise TableError(f"Y must hold class indices 0 to C - 1, got {shown}, ...")
        check_labels(np.bincount(targets[:, 0].astype(int)), [f"{i:g}" for i in labels], "Y")
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
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))
    if len(wrong):
        raise TableError(
            f"weights must be finite and not negative, got {array[wrong[0]]:g} in row "
            f"{wrong[0] + 1}"
        )
    if not array.any():
        raise TableError("weights must not all be zero")
    return array


def split_table(table: Table, test_fraction: float, seed: int) -> tuple[Table, Table]:
    """Split a table into one of training rows and one of test rows: see :func:`split_rows`."""
    parts = split_rows(table.Y, table.task, test_fraction, seed)
    train, test = (replace(table, X=table.X[rows], Y=table.Y[rows]) for rows in parts)
    return train, test


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
    if not 0.0 < test_fraction < 1.0:
        raise TableError(f"test_fraction must be between 0 and 1, got {test_fraction}")
    count = math.ceil(test_fraction * len(Y))
    if count >= len(Y):
        raise TableError(
            f"test_fraction {test_fraction} of {len(Y)} rows is {count}: none is left for training"
        )
    labels = Y[:, 0] if task == "classification" else None
    try:
        train, test = selection.train_test_split(
            np.arange(len(Y)), test_size=test_fraction, random_state=seed, stratify=labels
        )
    except ValueError as error:
        raise TableError(
            f"cannot split {len(Y)} rows with test_fraction {test_fraction}: {error}"
        ) from error
    return np.sort(train), np.sort(test)


def _check_rows(X: Array, Y: Array) -> None:
    if len(X) != len(Y):
        raise TableError(f"X and Y must have the same rows, got {len(X)} and {len(Y)}")
