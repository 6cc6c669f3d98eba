"""From the units of a table to those of a model, where computing can still be exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data import Standardiser
from gpflow_dwp.exceptions import TableError

__all__ = ["fit_standardiser", "standardise"]


def fit_standardiser(
    values: npt.NDArray[np.float64], *, names: Sequence[str], path: Path | None
) -> Standardiser:
    """Look up means and scales of a table's columns.

    :param values: Training rows, [N, D].
    :param names: Of the columns.
    :param path: Of the table; None for one that is no file.
    :raises TableError: If the scale of a column is no number in double precision.
    """
    try:
        return Standardiser.fit(values, names=names)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def standardise(
    standardiser: Standardiser,
    values: npt.NDArray[np.float64],
    *,
    names: Sequence[str],
    path: Path | None,
    place: Callable[[int], str],
) -> npt.NDArray[np.float64]:
    """Standardise numbers of a table.

    :param standardiser: Of its columns.
    :param values: The numbers, [N, D].
    :param names: Of the columns.
    :param path: Of the table; None for one that is no file.
    :param place: Says where a row is, given its index.
    :raises TableError: If a number is so far from those of training that its square, as in a
        distance, is not finite.
    """
    with np.errstate(over="ignore"):
        found = standardiser.transform(values)
        wrong = np.argwhere(~np.isfinite(np.square(found)))
    if len(wrong):
        row, column = wrong[0]
        raise TableError(
            f"{path}: column {names[column]!r} holds {values[row, column]:g} in {place(row)}, too "
            "far from what is trained on to be computed with"
        )
    return found
