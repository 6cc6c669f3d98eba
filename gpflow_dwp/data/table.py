"""Inputs and targets as arrays: with names, split."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = [
    "Table",
    "Task",
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
