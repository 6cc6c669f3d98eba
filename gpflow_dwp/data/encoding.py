"""From a table's cells to numbers: categories one-hot, missing cells filled."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.data.cells import Cells, merge_whole
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

__all__ = ["ColumnEncoder", "ImputationStrategy"]

ImputationStrategy = Literal["mean", "median", "most_frequent"]
"""What a missing number is replaced by, of the column in the training rows. A missing category is
one of its own in any case."""

_HINT_MISSING = (
    "; missing cells are filled only where impute (--impute) names a strategy: "
    + ", ".join(get_args(ImputationStrategy))
)

_MISSING = "(missing)"
_FEW_CATEGORIES = 10
_MOST_CATEGORIES = 100
"""More would be as many inputs, of which a row has one: a name or a date rather than a category."""


@dataclass(frozen=True)
class ColumnEncoder:
    """Turns columns of cells into numbers.

    Fit it on training rows only, like a :class:`Standardiser`. Where all categories of a column are
    whole numbers, 1 and 1.0 are one; later rows are read so in any case.

    :param columns: The columns that it takes, in order; all but those of ``categories`` numeric.
    :param categories: Of each categorical column, the categories, in the order of their columns.
    :param fill: What replaces a missing cell, by column; numbers of other columns may not miss.
    :raises ValueError: If ``categories`` or ``fill`` names another column.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.categories, *self.fill):
            if name not in self.columns:
                raise ValueError(f"columns must hold {name!r}, got {', '.join(self.columns)}.")

    @classmethod
    def fit(
        cls,
        cells: Cells,
        columns: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        impute: ImputationStrategy | None = None,
    ) -> ColumnEncoder:
        """Look up categories and fillings.

        :param cells: Training rows; no others.
        :param columns: The columns to take, in order.
        :param categorical: Those of them that hold categories.
        :param impute: What replaces missing numbers; None to refuse them.
        :raises TableError: If a name or strategy is unknown, a column is empty, a cell of a numeric
            column is no number, or missing and ``impute`` is None, or a column holds more than 100
            categories, or one for each row.
        """
        if impute is not None and impute not in get_args(ImputationStrategy):
            raise TableError(
                f"impute must be one of {', '.join(get_args(ImputationStrategy))}, got {impute!r}"
            )
        cells.check_has(columns, "feature")
        for name in categorical:
            if name not in columns:
                cells.check_has([name], "categorical")
                raise TableError(
                    f"{cells.path}: {name!r} is named as categorical (--categorical), but is no "
                    "input (--columns, --drop)"
                )
        for name in columns:
            if cells.is_missing(name).all():
                raise TableError(f"{cells.path}: column {name!r} is empty")
        numeric = [name for name in columns if name not in categorical]
        # All that may be categories are named at once.
        option = shlex.join(["--categorical", *filter(cells.is_text, numeric)])
        hint = f"; columns of categories have to be named as categorical ({option})"
        numbers = {name: cells.numbers(name, hint, missing=True) for name in numeric}
        for name in numeric if impute is None else ():
            cells.check_complete(name, _HINT_MISSING)
        categories = {name: _categories(cells, name) for name in categorical}
        fill: dict[str, float | str] = {}
        if impute is not None:
            imputer = import_optional("sklearn.impute", "cli").SimpleImputer(strategy=impute)
            for name, column in numbers.items():
                fill[name] = float(imputer.fit(column[:, None]).statistics_[0])
        return cls(tuple(columns), categories, fill)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of what :meth:`transform` returns: a category's is ``column=category``."""
        names: list[str] = []
        for name in self.columns:
            found = self.categories.get(name)
            names.extend([name] if found is None else [f"{name}={value}" for value in found])
        return tuple(names)

    def transform(self, cells: Cells) -> Array:
        """Return the columns as numbers, [N, D]: a category has 1 in its own column.

        A category that the training rows do not have is 0 in all of them: see :meth:`unseen`. A
        missing one is the category "(missing)".

        :param cells: Rows of a table with the columns.
        :raises TableError: If a column is missing, a numeric cell is no number, or a missing one
            has nothing to be filled with.
        """
        cells.check_has(self.columns, "feature")
        parts = []
        for name in self.columns:
            if name not in self.fill and name not in self.categories:
                cells.check_complete(name, _HINT_MISSING)
            if name in self.categories:
                values = self._values(cells, name)[:, None]
                parts.append((values == np.array(self.categories[name], object)).astype(float))
            else:
                numbers = cells.numbers(name, missing=True)
                missing = np.isnan(numbers)
                parts.append(np.where(missing, self.fill.get(name, np.nan), numbers)[:, None])
        return np.hstack(parts).astype(np.float64)

    def unseen(self, cells: Cells) -> dict[str, dict[str, int]]:
        """Return by column which categories the training rows do not have, and in how many rows."""
        found: dict[str, dict[str, int]] = {}
        for name, known in self.categories.items():
            counts = Counter(value for value in self._values(cells, name) if value not in known)
            if counts:
                found[name] = dict(sorted(counts.items()))
        return found

    def count_filled(self, cells: Cells) -> dict[str, int]:
        """Return by column how many missing cells are filled."""
        counts = {name: int(cells.is_missing(name).sum()) for name in self.fill}
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON: the arguments of the class by name."""
        return {
            "columns": list(self.columns),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "fill": dict(self.fill),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ColumnEncoder:
        """The inverse of :meth:`to_dict`.

        :raises ValueError: If a field is missing, or names another column.
        """
        missing = [name for name in ("columns", "categories", "fill") if name not in fields]
        if missing:
            raise ValueError(f"a saved encoder needs {', '.join(missing)}.")
        categories = {name: tuple(values) for name, values in fields["categories"].items()}
        return cls(tuple(fields["columns"]), categories, dict(fields["fill"]))

    def _values(self, cells: Cells, name: str) -> npt.NDArray[np.object_]:
        values = np.array(cells.names(name, self.categories[name]), object)
        values[cells.is_missing(name)] = self.fill.get(name, _MISSING)
        return values


def _categories(cells: Cells, name: str) -> tuple[str, ...]:
    """Those of a column, unless it only looks like categories, of which each row has its own."""
    missing = cells.is_missing(name)
    names = set(merge_whole([str(cell) for cell in cells.column(name)[~missing]]))
    found = sorted(names | {_MISSING} if missing.any() else names)
    where, count = f"{cells.path}: column {name!r}", len(cells)
    if len(found) > _MOST_CATEGORIES:
        raise TableError(
            f"{where} holds {len(found)} categories, such as {found[0]!r}, and each would be an "
            f"input; at most {_MOST_CATEGORIES} can be used: leave the column out, or join some"
        )
    if len(found) > max(_FEW_CATEGORIES, count // 2):
        raise TableError(
            f"{where} holds {len(found)} categories, such as {found[0]!r}, in {count} rows; more "
            f"than {_FEW_CATEGORIES} need at least two rows each on average: leave the column "
            "out, or join some"
        )
    return tuple(found)
