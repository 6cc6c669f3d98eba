"""From a table's columns to numbers: categories one-hot, times in seconds, missing cells filled."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gpflow_dwp.data.reading import check_columns, refuse
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import Array

__all__ = [
    "ColumnEncoder",
    "Kind",
    "as_names",
    "as_numbers",
    "kind_of",
    "problem_of",
    "problem_of_categories",
]

Kind = Literal["number", "category", "time"]

_MISSING = "(missing)"
_FEW_CATEGORIES = 10
_MOST_CATEGORIES = 100
"""More would be as many inputs, of which a row has one: a name rather than a category."""
_DATE = r"\d{4}-\d{2}-\d{2}([T ].*)?"
_EXACT, _LARGEST = 2**53, 1e100


@dataclass(frozen=True)
class ColumnEncoder:
    """Turns columns of a data frame into numbers; 1 and 1.0 are one category.

    :param columns: The columns that it takes, in order.
    :param categories: Of each categorical column, the categories, in the order of their columns.
    :param fill: What replaces a missing number, by column; others may not miss.
    :param origins: Of each column of times, the one that counts as 0 seconds, in ISO 8601.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def fit(cls, frame: Any, kinds: Mapping[str, Kind], *, impute: bool = False) -> ColumnEncoder:
        """Look up categories, medians and first times of columns in training rows."""
        categories, fill, origins = {}, {}, {}
        for name, kind in kinds.items():
            if kind == "category":
                categories[name] = tuple(sorted({*as_names(frame[name])}))
                continue
            if kind == "time":
                origins[name] = _as_times(frame[name]).min().isoformat()
            if impute:
                fill[name] = float(np.nanmedian(as_numbers(frame[name], origins.get(name))))
        return cls(tuple(kinds), categories, fill, origins)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of what :meth:`transform` returns: a category's is ``column=category``.

        With a prime where a column is called so.
        """
        taken, names = {*self.columns}, list[str]()
        for name in self.columns:
            for value in self.categories.get(name, ()):
                names.append(f"{name}={value}")
                while names[-1] in taken:
                    names[-1] += "'"
                taken.add(names[-1])
            if name not in self.categories:
                names.append(name)
        return tuple(names)

    def transform(self, frame: Any, *, where: object = "the table") -> Array:
        """Return the columns as numbers, [N, D]: a category has 1 in its own column.

        A category that the training rows do not have is 0 in all of them. A missing one is the
        category "(missing)".

        :raises TableError: If a column is missing, or cells cannot be used; it names all columns.
        """
        check_columns(where, frame, self.columns, "feature")
        parts, problems = [], list[str]()
        for name in self.columns:
            if name in self.categories:
                parts.append(
                    as_names(frame[name])[:, None] == np.array(self.categories[name], object)
                )
                continue
            numbers, fill = as_numbers(frame[name], self.origins.get(name)), self.fill.get(name)
            problems.append(problem_of(frame[name], numbers, may_miss=fill is not None))
            parts.append(np.where(frame[name].isna(), fill or 0.0, numbers)[:, None])
        refuse(where, problems)
        return np.hstack(parts).astype(np.float64)

    def notes(self, frame: Any) -> list[str]:
        """Say which categories the training rows do not have, and which cells are filled."""
        notes = []
        for name, known in self.categories.items():
            counts = Counter(value for value in as_names(frame[name]) if value not in known)
            if counts:
                found = ", ".join(f"{value!r} ({n} rows)" for value, n in sorted(counts.items()))
                notes.append(
                    f"column {name!r} holds categories that training did not see, taken as none of "
                    f"the known ones: {found}"
                )
        for name, value in self.fill.items():
            count = int(frame[name].isna().sum())
            if count:
                notes.append(f"column {name!r}: {count} missing cells filled with {value}")
        return notes

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ColumnEncoder:
        """Build it from JSON, of its arguments by name."""
        categories = {name: tuple(values) for name, values in fields["categories"].items()}
        return cls(tuple(fields["columns"]), categories, fields["fill"], fields["origins"])


def kind_of(column: Any) -> Kind:
    """What a column holds."""
    types = import_optional("pandas", "cli").api.types
    if types.is_datetime64_any_dtype(column):
        return "time"
    if types.is_bool_dtype(column) or hasattr(column, "cat"):
        return "category"
    if types.is_numeric_dtype(column):
        return "number"
    filled = column.dropna()
    # A few cells that are no numbers are a mistake, or marks of missing values.
    if (~np.isnan(as_numbers(filled))).mean() > 0.5:
        return "number"
    is_time = filled.str.fullmatch(_DATE).all() and not _as_times(filled).isna().any()
    return "time" if is_time else "category"


def as_names(column: Any) -> Any:
    """Return a column as names of categories, an array of text: 1.0 is 1."""
    names = column.astype(object).map(str).str.strip()
    names = names.str.replace(r"^(-?(?:0|[1-9]\d*))\.0+$", r"\1", regex=True)
    return names.mask(column.isna(), _MISSING).to_numpy(object)


def as_numbers(column: Any, origin: str | None = None) -> Array:
    """Return a column's numbers, or seconds since an origin; NaN where there are none."""
    pandas = import_optional("pandas", "cli")
    if origin is not None:
        seconds = (_as_times(column) - pandas.Timestamp(origin)).dt.total_seconds()
        return np.asarray(seconds, np.float64)
    if pandas.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    if pandas.api.types.is_datetime64_any_dtype(column):
        return np.full(len(column), np.nan)
    cells = column.to_numpy(object)
    if not {*"".join(map(str, cells))} - {*"0123456789.eE+-"}:  # Python's numbers are no others
        with contextlib.suppress(ValueError):
            return np.asarray(cells.astype(np.float64))
    numbers = pandas.to_numeric(column, errors="coerce").to_numpy(np.float64).copy()
    found = ~np.isnan(numbers)
    numbers[found] = column[found].astype(np.float64)  # which rounds correctly
    return np.asarray(numbers)


def _as_times(column: Any) -> Any:
    pandas = import_optional("pandas", "cli")
    if not pandas.api.types.is_datetime64_any_dtype(column):
        column = column.astype(object)
    times = pandas.to_datetime(column, utc=True, errors="coerce", format="ISO8601")
    return times.dt.tz_localize(None)


def problem_of(column: Any, numbers: Array, *, may_miss: bool = False, hint: str = "") -> str:
    """Say what is wrong with the cells of a column of numbers or times; "" for nothing."""
    if (np.abs(numbers) < _EXACT).all():
        return ""
    missing = column.isna().to_numpy()
    wrong = np.isnan(numbers) & ~missing
    inexact = "whole numbers beyond 2**53 are not told apart as numbers"
    large = np.abs(numbers) >= _EXACT
    large[large] = [bool(re.fullmatch(r"[+-]?\d+", str(cell))) for cell in column[large]]
    for rows, what in (
        (missing & (not may_miss), "has no value in {place}; --impute fills missing inputs"),
        (wrong, "is not numeric: {cell!r} in {place}{hint}"),
        (np.abs(numbers) >= _LARGEST, "holds {cell} in {place}, too large to be computed with"),
        (large, "holds {cell} in {place}: {inexact}; {drop}, or subtract their least"),
    ):
        if rows.any():
            cell, others = str(column[rows].iloc[0]), int(rows.sum()) - 1
            place = f"data row {column.index[rows][0] + 1}"
            place += f", and in {others} more" if others else ""
            if not hint and 2 * wrong.sum() < len(column):
                hint = f"; if that marks a missing value: {shlex.join(['--missing', cell])}"
            given = {"cell": cell, "place": place, "hint": hint, "inexact": inexact}
            return f"column {column.name!r} {what.format(**given, drop=_drop(column))}"
    return ""


def problem_of_categories(column: Any, way: str = "") -> str:
    """Say of a column that only looks like categories how many it has; "" for nothing.

    :param way: To do without it; "" for that of the command line.
    """
    found, count = sorted({*as_names(column)}), len(column)
    if len(found) <= min(_MOST_CATEGORIES, max(_FEW_CATEGORIES, count // 2)):
        return ""
    return (
        f"column {column.name!r} holds {len(found)} different texts, such as {found[0]!r}, in "
        f"{count} rows; categories are at most {_MOST_CATEGORIES}, of two rows each: "
        f"{way or _drop(column)}, or join some"
    )


def _drop(column: Any) -> str:
    return f"leave it out ({shlex.join(['--drop', str(column.name)])})"
