"""Columns of a data frame that an estimator is fitted to: categories and whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data.encoding import ColumnEncoder, as_names, kind_of, problem_of_categories
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import Array, check_matrix

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns:
    """D columns, and their E numbers: a category has one for each of its levels.

    Designs are made of codes, [N, D]: of a category the index of its level.

    :param names: Of the columns, in order.
    :param dtypes: As pandas calls them; of categories that of their levels.
    :param encoder: Of those that hold categories.
    """

    names: tuple[Any, ...]
    dtypes: tuple[str, ...]
    encoder: ColumnEncoder

    @classmethod
    def of(cls, X: Any) -> Columns | None:
        """Look at what is fitted to; None without categories and whole numbers in a frame.

        Text and pandas' categories are categories; Boolean columns are 0 and 1. A frame in which
        names come twice is a matrix.

        :raises ValueError: If a column has more texts than categories may have.
        """
        if not hasattr(X, "columns") or len({*X.columns}) < len(X.columns):
            return None
        frame = _as_frame(X)
        others = [name for name in frame if frame[name].dtype.kind not in "bMm"]
        categories = [name for name in others if kind_of(frame[name]) == "category"]
        for name in categories:
            problem = problem_of_categories(frame[name], way="leave it out")
            if problem:
                raise ValueError(f"X must hold numbers and categories: {problem}.")
        parts = [getattr(frame[name].dtype, "categories", frame[name]) for name in frame]
        encoder = ColumnEncoder.fit(frame, dict.fromkeys(categories, "category"))
        found = cls(tuple(frame), tuple(str(part.dtype) for part in parts), encoder)
        return found if categories or found.are_whole.any() else None

    @classmethod
    def of_numbers(cls, names: Sequence[Any]) -> Columns:
        """Those of a matrix, or of a frame of numbers that need not be whole."""
        return cls((*names,), ("float64",) * len(names), ColumnEncoder(()))

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Of each category, as text."""
        return self.encoder.categories

    @property
    def widths(self) -> list[int]:
        """How many numbers each column has, [D]."""
        return [len(self.levels.get(name, (0,))) for name in self.names]

    @property
    def are_whole(self) -> npt.NDArray[np.bool_]:
        """Which columns hold whole numbers, [D]."""
        is_whole = [each.lower().startswith(("int", "uint", "bool")) for each in self.dtypes]
        return np.array(is_whole) & ~self.are_categories

    @property
    def are_categories(self) -> npt.NDArray[np.bool_]:
        """Which columns hold categories, [D]."""
        return np.array([name in self.levels for name in self.names])

    def encoded(self, X: Any, matrix_of: Callable[[Any], Array]) -> Array:
        """The numbers of a frame, [N, E].

        :param matrix_of: What makes a matrix of the columns without categories.
        :raises ValueError: If it has a level that the first one has not.
        """
        frame, blocks = _as_frame(X), {}
        for name, known in self.levels.items():
            names = as_names(frame[name])
            for row in np.flatnonzero(~np.isin(names, known))[:1]:
                raise ValueError(
                    f"X[{name!r}] must be one of the levels that fit has seen, "
                    f"{', '.join(map(repr, known))}, got {names[row]!r} in row {row + 1}."
                )
            blocks[name] = names[:, None] == np.array(known, object)
        if others := [name for name in self.names if name not in blocks]:
            numbers = matrix_of(frame[others])
            blocks |= {name: numbers[:, [index]] for index, name in enumerate(others)}
        return np.hstack([blocks[name] for name in self.names]).astype(np.float64)

    def rounded(self, codes: Array) -> Array:
        """Codes, [N, D], as levels and whole numbers are."""
        return np.where(self.are_categories | self.are_whole, np.rint(codes) + 0.0, codes)

    def expanded(self, codes: Array) -> Array:
        """The numbers, [N, E], of codes, which are rounded."""
        blocks = [
            np.eye(width)[column.astype(int)] if name in self.levels else column[:, None]
            for name, width, column in zip(
                self.names, self.widths, self.rounded(codes).T, strict=True
            )
        ]
        return np.hstack(blocks)

    def codes(self, X: Array) -> Array:
        """The codes, [N, D], of numbers."""
        blocks = zip(
            np.split(X, np.cumsum(self.widths)[:-1], axis=1), self.are_categories, strict=True
        )
        return np.stack([b.argmax(1) if is_category else b[:, 0] for b, is_category in blocks], 1)

    def summed(self, values: Array) -> Array:
        """Sums over the numbers of each column, from [E, ...] to [D, ...]."""
        return np.asarray(np.add.reduceat(values, np.cumsum([0, *self.widths[:-1]]), axis=0))

    def decoded(self, X: Array) -> Any:
        """The frame of numbers, [N, E]."""
        pandas, columns = import_optional("pandas", "cli"), {}
        for name, dtype, whole, values in zip(
            self.names, self.dtypes, self.are_whole, self.codes(X).T, strict=True
        ):
            if name in self.levels:
                names = np.array(self.levels[name], object)[values.astype(int)]
                columns[name] = pandas.Series(names).astype(dtype)
            else:
                columns[name] = values.astype(dtype.lower()) if whole else values
        return pandas.DataFrame(columns)

    def limits(self, bounds: Any) -> Array:
        """Check lower and upper bounds, of codes, [D, 2].

        They are half a step wider than what is rounded.

        :param bounds: By name, or as many pairs as columns; of categories None, or nothing.
        :raises ValueError: If a pair is missing, given for a category, or none of two numbers.
        """
        count = len(self.names)
        if not isinstance(bounds, Mapping):
            if len(bounds) != count:
                raise ValueError(f"bounds must have shape {[count, 2]}, got {len(bounds)} rows.")
            bounds = dict(zip(self.names, bounds, strict=True))
        pairs = {name: bounds.get(name) for name in self.names}
        for name in bounds:
            if name not in pairs:
                raise ValueError(f"bounds must be of {list(self.names)}, got {name!r}.")
        for name, known in self.levels.items():
            if pairs[name] is not None:
                raise ValueError(
                    f"bounds must be None for {name!r}, whose levels are those of the runs, got "
                    f"{pairs[name]!r}: candidates may have fewer."
                )
            pairs[name] = (-0.5, len(known) - 0.5)
        for name, pair in pairs.items():
            if np.shape(pair) != (2,):
                raise ValueError(f"bounds must be a pair of numbers for {name!r}, got {pair!r}.")
        limits, whole = check_matrix("bounds", list(pairs.values())), self.are_whole
        limits[whole] = np.stack([np.ceil(limits[whole, 0]), np.floor(limits[whole, 1])], axis=1)
        for index in np.flatnonzero(limits[:, 0] >= limits[:, 1])[:1]:
            pair, name = limits[index].tolist(), self.names[index]
            raise ValueError(f"bounds must be pairs (lower, upper), got {pair} for input {name!r}.")
        step = 0.5 * whole[:, None] * [-1.0, 1.0]
        inwards = np.nextafter(limits + step, limits.mean(axis=1, keepdims=True))
        return np.where((whole | self.are_categories)[:, None], inwards, limits)


def _as_frame(X: Any) -> Any:
    pandas = import_optional("pandas", "cli")
    if isinstance(X, pandas.DataFrame):
        return X
    return pandas.DataFrame({name: np.asarray(X[name]) for name in X.columns})
