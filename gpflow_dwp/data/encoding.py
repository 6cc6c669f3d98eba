"""From a table's columns to numbers: categories one-hot, times in seconds, missing cells filled."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gpflow_dwp.data.reading import check_columns, refuse
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["ColumnEncoder", "ImputationStrategy", "as_names", "as_numbers", "column_kinds"]

ImputationStrategy = Literal["mean", "median", "most_frequent"]
"""What a missing number is replaced by, of the column in the training rows. A missing category is
one of its own in any case."""

Kind = Literal["number", "category", "time"]

_MISSING = "(missing)"
_FEW_CATEGORIES = 10
_MOST_CATEGORIES = 100
"""More would be as many inputs, of which a row has one: a name rather than a category."""
_DATE = r"\d{4}-\d{2}-\d{2}([T ].*)?"
_EXACT = 2**53


@dataclass(frozen=True)
class ColumnEncoder:
    """Turns columns of a data frame into numbers.

    Fit it on training rows only, like a :class:`Standardiser`. 1 and 1.0 are one category.

    :param columns: The columns that it takes, in order.
    :param categories: Of each categorical column, the categories, in the order of their columns.
    :param fill: What replaces a missing number, by column; others may not miss.
    :param origins: Of each column of times, the one that counts as 0 seconds, in ISO 8601.
    :raises ValueError: If ``categories``, ``fill`` or ``origins`` names another column.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.categories, *self.fill, *self.origins):
            if name not in self.columns:
                raise ValueError(f"columns must hold {name!r}, got {', '.join(self.columns)}.")

    @classmethod
    def fit(
        cls,
        frame: Any,
        columns: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        impute: ImputationStrategy | None = None,
        rows: Any = slice(None),
        where: object = "the table",
    ) -> ColumnEncoder:
        """Look up kinds of columns, categories and fillings.

        Boolean columns, and columns of text with few values, are categories without being named.

        :param frame: A data frame.
        :param columns: The columns to take, in order.
        :param categorical: Those of them that hold categories though they are numbers.
        :param impute: What replaces missing numbers; None to refuse them.
        :param rows: Training rows, by their number; what kind a column is, all rows say.
        :param where: What messages begin with.
        :raises TableError: If columns cannot be used; it names all that cannot.
        """
        kinds, problems = column_kinds(
            frame, columns, categorical=categorical, impute=impute, where=where
        )
        refuse(where, problems)
        part = frame.iloc[rows]
        categories, fill, origins = {}, {}, {}
        for name, kind in kinds.items():
            if kind == "category":
                categories[name] = tuple(sorted(set(as_names(part[name]))))
                continue
            if kind == "time":
                origins[name] = _as_times(part[name]).min().isoformat()
            if impute is not None:
                numbers = _numbers(part[name], origins.get(name))
                method = {"most_frequent": lambda values: values.mode()[0]}.get(impute)
                series = import_optional("pandas", "cli").Series(numbers)
                fill[name] = float(method(series) if method else getattr(series, impute)())
        return cls(tuple(columns), categories, fill, origins)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of what :meth:`transform` returns: a category's is ``column=category``."""
        names: list[str] = []
        for name in self.columns:
            found = self.categories.get(name)
            names.extend([name] if found is None else [f"{name}={value}" for value in found])
        return tuple(names)

    def transform(self, frame: Any, *, where: object = "the table") -> Array:
        """Return the columns as numbers, [N, D]: a category has 1 in its own column.

        A category that the training rows do not have is 0 in all of them: see :meth:`unseen`. A
        missing one is the category "(missing)".

        :param frame: Rows of a table with the columns.
        :param where: What messages begin with.
        :raises TableError: If a column is missing, or cells cannot be used; it names all columns.
        """
        check_columns(where, list(frame), self.columns, "feature")
        parts, problems = [], list[str]()
        for name in self.columns:
            if name in self.categories:
                names = as_names(frame[name])[:, None]
                parts.append(names == np.array(self.categories[name], object))
                continue
            numbers = _numbers(frame[name], self.origins.get(name))
            missing = frame[name].isna().to_numpy()
            fill = self.fill.get(name)
            problems += _bad_cells(frame[name], numbers, may_miss=fill is not None)
            parts.append(np.where(missing, np.nan if fill is None else fill, numbers)[:, None])
        refuse(where, problems)
        return np.hstack(parts).astype(np.float64)

    def unseen(self, frame: Any) -> dict[str, dict[str, int]]:
        """Return by column which categories the training rows do not have, and in how many rows."""
        found: dict[str, dict[str, int]] = {}
        for name, known in self.categories.items():
            counts = Counter(value for value in as_names(frame[name]) if value not in known)
            if counts:
                found[name] = dict(sorted(counts.items()))
        return found

    def count_filled(self, frame: Any) -> dict[str, int]:
        """Return by column how many missing cells are filled."""
        counts = {name: int(frame[name].isna().sum()) for name in self.fill}
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON: the arguments of the class by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ColumnEncoder:
        """The inverse of :meth:`to_dict`.

        :raises ValueError: If a field is missing, or names another column.
        """
        missing = [name for name in ("columns", "categories", "fill") if name not in fields]
        if missing:
            raise ValueError(f"a saved encoder needs {', '.join(missing)}.")
        categories = {name: tuple(values) for name, values in fields["categories"].items()}
        origins = dict(fields.get("origins", {}))
        return cls(tuple(fields["columns"]), categories, dict(fields["fill"]), origins)


def column_kinds(
    frame: Any,
    columns: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    impute: ImputationStrategy | None = None,
    where: object = "the table",
) -> tuple[dict[str, Kind], list[str]]:
    """Return what kind each column is, and all problems of the columns.

    Arguments are those of :meth:`ColumnEncoder.fit`.

    :raises TableError: If a column is missing, or the strategy is unknown.
    """
    if impute is not None and impute not in get_args(ImputationStrategy):
        known = ", ".join(get_args(ImputationStrategy))
        raise TableError(f"impute must be one of {known}, got {impute!r}")
    check_columns(where, list(frame), columns, "feature")
    check_columns(where, list(frame), categorical, "categorical")
    others = [name for name in categorical if name not in columns]
    if others:
        raise TableError(
            f"{where}: {others[0]!r} is named as categorical (--categorical), but is no input "
            "(--columns, --drop)"
        )
    kinds: dict[str, Kind] = {}
    problems: list[str] = []
    for name in columns:
        column = frame[name]
        if column.isna().all():
            problems.append(f"column {name!r} is empty")
            continue
        kinds[name] = kind = "category" if name in categorical else _kind(column)
        if kind == "category":
            problems += _bad_categories(column)
        else:
            origin = "1970-01-01" if kind == "time" else None
            numbers = _numbers(column, origin)
            problems += _bad_cells(column, numbers, may_miss=impute is not None)
    return kinds, problems


def as_numbers(column: Any, hint: str = "") -> tuple[Array, list[str]]:
    """Return a column as numbers, [N], and what is wrong with them.

    :param hint: What a message about a cell that is no number ends in.
    """
    numbers = _numbers(column, None)
    return numbers, _bad_cells(column, numbers, hint=hint)


def as_names(column: Any) -> Any:
    """Return a column as names of categories, an array of text: 1.0 is 1."""
    names = column.astype(object).map(str).str.strip()
    names = names.str.replace(r"^(-?(?:0|[1-9]\d*))\.0+$", r"\1", regex=True)
    return names.mask(column.isna(), _MISSING).to_numpy(object)


def _kind(column: Any) -> Kind:
    types = import_optional("pandas", "cli").api.types
    if types.is_datetime64_any_dtype(column):
        return "time"
    if types.is_bool_dtype(column):
        return "category"
    filled = column.dropna()
    if types.is_numeric_dtype(column):
        return "number"
    if filled.str.fullmatch(_DATE).all() and not _as_times(filled).isna().any():
        return "time"
    # A few cells that are no numbers are a mistake, or marks of missing values.
    are_numbers = ~np.isnan(_numbers(filled, None))
    return "number" if are_numbers.mean() > 0.5 else "category"


def _numbers(column: Any, origin: str | None) -> Array:
    """A column's numbers, or seconds since an origin; NaN where there are none."""
    pandas = import_optional("pandas", "cli")
    if origin is not None:
        seconds = (_as_times(column) - pandas.Timestamp(origin)).dt.total_seconds()
        return np.asarray(seconds, np.float64)
    if pandas.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    if pandas.api.types.is_datetime64_any_dtype(column):
        return np.full(len(column), np.nan)
    numbers = pandas.to_numeric(column, errors="coerce").to_numpy(np.float64)
    found = ~np.isnan(numbers)
    numbers = numbers.copy()
    numbers[found] = column[found].astype(np.float64)  # which rounds correctly
    return numbers


def _as_times(column: Any) -> Any:
    pandas = import_optional("pandas", "cli")
    types = pandas.api.types
    if not types.is_datetime64_any_dtype(column):
        column = column.astype(object)
    times = pandas.to_datetime(column, utc=True, errors="coerce", format="ISO8601")
    return times.dt.tz_localize(None)


def _bad_cells(column: Any, numbers: Array, *, may_miss: bool = False, hint: str = "") -> list[str]:
    """What is wrong with the cells of a column of numbers or times."""
    name, missing = column.name, column.isna().to_numpy()
    if missing.any() and not may_miss:
        place = _place(column, missing)
        return [f"column {name!r} has no value in {place}; missing inputs are filled by --impute"]
    wrong = np.isnan(numbers) & ~missing
    if wrong.any():
        cell = str(column[wrong].iloc[0])
        most = wrong.sum() * 2 < len(column)
        hint = hint or (f"; if that marks a missing value: {_option('missing', cell)}" * bool(most))
        return [f"column {name!r} is not numeric: {cell!r} in {_place(column, wrong)}{hint}"]
    if (infinite := np.isinf(numbers)).any():
        cell = column[infinite].iloc[0]
        return [f"column {name!r} is not finite: {cell} in {_place(column, infinite)}"]
    if (large := np.abs(numbers) >= _EXACT).any():
        cells = column[large].map(str)
        inexact = large.copy()
        whole = cells.str.fullmatch(r"[+-]?\d+")
        inexact[large] = [
            bool(is_whole) and int(cell) != int(float(cell))
            for cell, is_whole in zip(cells, whole, strict=True)
        ]
        if inexact.any():
            return [_too_large(column, inexact)]
    return []


def _too_large(column: Any, rows: Any) -> str:
    return (
        f"column {column.name!r} holds {column[rows].iloc[0]} in {_place(column, rows)}: whole "
        "numbers beyond 2**53 are not told apart as numbers; leave it out "
        f"({_option('drop', str(column.name))}), or subtract their least"
    )


def _bad_categories(column: Any) -> list[str]:
    """A column that only looks like categories, of which each row has its own."""
    found, count = sorted(set(as_names(column))), len(column)
    if len(found) <= min(_MOST_CATEGORIES, max(_FEW_CATEGORIES, count // 2)):
        return []
    problem = (
        f"column {column.name!r} holds {len(found)} different texts, such as {found[0]!r}, in "
        f"{count} rows; categories are at most {_MOST_CATEGORIES}, of two rows each: leave it out "
        f"({_option('drop', str(column.name))}), or join some"
    )
    return [problem]


def _place(column: Any, rows: Any) -> str:
    """Where a cell is in its file, from 1 below the header, and how many more there are."""
    count = int(rows.sum()) - 1
    return f"data row {column.index[rows][0] + 1}" + (f", and in {count} more" if count else "")


def _option(name: str, value: str) -> str:
    return shlex.join([f"--{name}", value])
