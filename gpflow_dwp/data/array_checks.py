"""Arrays of data, checked: finite matrices of float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import TableError
from gpflow_dwp.validation import as_real_array

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["as_numbers", "check_matrix"]


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
