"""A table's cells as text, with a readable message for what cannot be used.

Everything is read as text and converted column by column, so that a message can quote the cell.
Rows are counted as a user sees them: the first line below the header is data row 1.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import string
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.data.array_checks import check_labels
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

__all__ = ["Cells", "as_known", "as_whole", "merge_whole", "read_cells"]

# Leading zeros and signs may be part of a name; long digits are none of a float's.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,29})(\.\d{1,30})?([eE][+-]?\d{1,2})?", re.ASCII)
_BLANK, _BREAK = codecs.BOM_UTF8 + string.whitespace.encode(), re.compile(rb"\r\n|\r|\n")
_MISSING = ("", "?", "#n/a", "<na>", "n/a", "na", "nan", "none", "null")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a file: see :func:`read_cells`.

    :param path: The file.
    :param header: The name of each column.
    :param text: A data frame of the cells as text, without blanks around them.
    :param original: A data frame of the same rows with the types that the file gives its columns.
    :param rows: Each row's number in the file, from 1 below the header.
    :param lines: Each row's line in the file, from 1, or None below a cell of several lines; None
        where a file has no lines.
    """

    path: Path
    header: list[str]
    text: Any
    original: Any
    rows: list[int]
    lines: list[int | None] | None = None

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: npt.NDArray[np.int64]) -> Cells:
        """Return the rows of these indices, from 0."""
        return replace(
            self,
            text=self.text.iloc[rows],
            original=self.original.iloc[rows],
            rows=[self.rows[row] for row in rows],
            lines=None if self.lines is None else [self.lines[row] for row in rows],
        )

    def column(self, name: str) -> Any:
        """Return a column as text."""
        return self.text.iloc[:, self.header.index(name)]

    def check_header(self) -> None:
        """Refuse a file without names of columns.

        :raises TableError: If a name is missing, is there twice, or all of them are numbers.
        """
        if all(_is_number(name) for name in self.header):
            raise TableError(f"{self.path}: the first line holds numbers; a header line is needed")
        for position, name in enumerate(self.header):
            if not name:
                raise TableError(
                    f"{self.path}: column {position + 1} has no name; name it, or remove it if it "
                    "is only a row number"
                )
            if name in self.header[:position]:
                raise TableError(f"{self.path}: two columns are named {name!r}")

    def check_has(self, names: Sequence[str], role: str) -> None:
        """Refuse a file in which columns are missing.

        :param names: Columns that must be there, once each.
        :param role: What they are, for the message.
        :raises TableError: If one is not.
        """
        missing = [name for name in names if name not in self.header]
        if missing:
            listed = ", ".join(repr(name) for name in missing)
            message = f"{self.path}: no {role} column {listed}; the columns are "
            message += ", ".join(repr(name) for name in self.header)
            close = get_close_matches(missing[0], [name for name in self.header if name], n=1)
            if len(self.header) == 1 and any(mark in self.header[0] for mark in ";\t|"):
                message += "; columns must be separated by commas"
            elif missing[0] in map(str, self.original.index.names):
                message += "; the file has an index of this name: write it as a column"
            elif close:
                message += f"; did you mean {close[0]!r}?"
            raise TableError(message)
        for name in names:
            if self.header.count(name) > 1:
                raise TableError(f"{self.path}: two columns are named {name!r}")

    def numbers(self, name: str, hint: str = "", *, missing: bool = False) -> Array:
        """Return a column as numbers, [N].

        :param hint: What a message about a cell that is no number ends in.
        :param missing: Whether missing cells are allowed; they are NaN.
        :raises TableError: If a cell is missing or no finite number.
        """
        if not missing:
            self.check_complete(name)
        is_missing = self.is_missing(name)
        numbers = np.full(len(self), np.nan)
        for row, cell in enumerate(self.column(name)):
            if is_missing[row]:
                continue
            numbers[row] = float(cell) if _is_number(cell) else np.nan
            if not np.isfinite(numbers[row]):
                wrong, place = f"{self.path}: column {name!r} is not", self.place(row)
                if _is_number(cell):
                    raise TableError(f"{wrong} finite: {cell} in {place}")
                raise TableError(f"{wrong} numeric: {cell!r} in {place}{hint}")
        return numbers

    def labels(self, name: str) -> tuple[Array, tuple[str, ...]]:
        """Return a column as class indices [N, 1], and the label of each class in sorted order.

        :raises TableError: If a cell is missing, or the labels are no classification task.
        """
        self.check_complete(name)
        labels = [str(cell) for cell in self.column(name)]
        where = f"{self.path}: target column {name!r}"
        if all(_is_number(label) for label in labels):
            numbers = np.array([float(label) for label in labels])
            for row in np.flatnonzero(~(numbers == np.round(numbers))):
                wrong = f"{labels[row]} in {self.place(row)}"
                raise TableError(
                    f"{where} holds numbers that are no labels: {wrong}; "
                    "for numbers use the task regression (--task regression)"
                )
        merged = merge_whole(labels)
        are_whole = all(as_whole(label) is not None for label in labels)
        names = sorted(set(merged), key=int if are_whole else None)
        index = {name: position for position, name in enumerate(names)}
        indices = np.array([index[label] for label in merged])
        check_labels(np.bincount(indices), names, where)
        return indices.astype(np.float64)[:, None], tuple(names)

    def names(self, name: str, known: Collection[str]) -> list[str]:
        """Return a column as known names, of which 1 and 1.0 are one, or the text that is none."""
        cells = [str(cell) for cell in self.column(name)]
        found = {cell: as_known(cell, known) for cell in set(cells)}
        return [found[cell] for cell in cells]

    def is_missing(self, name: str) -> npt.NDArray[np.bool_]:
        """Return which cells of a column hold no value, [N]."""
        return self.column(name).str.lower().isin(_MISSING).to_numpy()

    def is_text(self, name: str) -> bool:
        """Return whether a column has values, and none of them is a number."""
        values = self.column(name)[~self.is_missing(name)]
        return len(values) > 0 and not any(map(_is_number, values))

    def check_complete(self, name: str, hint: str = "") -> None:
        """Refuse a column with a missing cell.

        :param hint: What the message ends in, unless no cell has a value.
        :raises TableError: If a cell is missing.
        """
        missing = np.flatnonzero(self.is_missing(name))
        if len(missing) == len(self):
            raise TableError(f"{self.path}: column {name!r} is empty")
        if len(missing):
            more = f", and in {len(missing) - 1} more" if len(missing) > 1 else ""
            place = self.place(int(missing[0]))
            raise TableError(f"{self.path}: column {name!r} has no value in {place}{more}{hint}")

    def place(self, row: int) -> str:
        """Return in words where the row of an index, from 0, is."""
        line = None if self.lines is None else self.lines[row]
        return f"data row {self.rows[row]}" + ("" if line is None else f" (line {line})")


def read_cells(path: str | Path) -> Cells:
    """Read the cells of a CSV or Parquet file.

    :param path: A file that ends in ``.parquet``, or else a CSV file with a header line,
        comma-separated, UTF-8.
    :return: All rows, those without a value included. Blank lines of a CSV file are none, except
        in the midst of a single column, where a missing cell is one.
    :raises TableError: If the file cannot be read or is empty.
    :raises ImportError: If pandas, or for Parquet pyarrow, is not installed.
    """
    pandas = import_optional("pandas", "cli")
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path}: no such file")
    if path.is_dir():
        raise TableError(f"{path}: a directory, not a CSV file")
    if path.suffix.lower() == ".parquet":
        import_optional("pyarrow", "cli")
        with _unreadable_named(pandas, path):
            return _as_cells(path, pandas.read_parquet(path))
    with _unreadable_named(pandas, path):
        with pandas.io.common.get_handle(path, "rb", compression="infer", is_text=False) as opened:
            content = opened.handle.read()
        # pandas counts the columns of the first line, also of a blank one.
        blank = content[: len(content) - len(content.lstrip(_BLANK))]
        above = [match.end() for match in _BREAK.finditer(blank)]
        frame = pandas.read_csv(
            io.BytesIO(content[above[-1] if above else 0 :]),
            header=None,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
        )
        if b"\0" in content:  # where pandas would end the cell
            line = content[: content.index(b"\0")].count(b"\n") + 1
            raise TableError(f"{path}: not a text file: line {line} holds a zero byte")
    frame.index += len(above)
    text = frame.fillna("").apply(lambda column: column.str.strip())
    filled = (text != "").any(axis=1).to_numpy()
    if not filled.any():
        raise TableError(f"{path}: the file is empty")
    kept = filled | ~_is_blank_line(content, frame, ~filled)
    kept[: filled.argmax()] = False  # above the header
    if frame.shape[1] == 1:  # A file may end in blank lines.
        kept[len(filled) - filled[::-1].argmax() :] = False
    text = text[kept]
    header = [str(name) for name in text.iloc[0]]
    rows = text.iloc[1:]
    last = _last_known_line(frame)
    lines = [int(line) + 1 if line < last else None for line in rows.index]
    numbers = list(range(1, len(rows) + 1))
    return Cells(path, header, rows, rows.set_axis(header, axis=1), numbers, lines)


# Names of classes and categories: what a table writes as 1 in one place is 1.0 in another, as a
# column of integers with a missing cell is one of floats elsewhere.


def as_whole(text: str) -> str | None:
    """Return a whole number without decimals, to the last digit; None for any other text."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    return str(int(number)) if number == int(number) else None


def merge_whole(texts: Sequence[str]) -> list[str]:
    """Return names of a column's cells, without decimals where all are whole numbers."""
    whole = [as_whole(text) for text in texts]
    names = [name for name in whole if name is not None]
    return names if len(names) == len(texts) else list(texts)


def as_known(text: str, known: Collection[str]) -> str:
    """Return the known name that a text stands for, or the text if it stands for none."""
    whole = as_whole(text)
    if text in known or whole is None:
        return text
    return next((name for name in known if as_whole(name) == whole), text)


@contextlib.contextmanager
def _unreadable_named(pandas: Any, path: Path) -> Iterator[None]:
    """Name the file in whatever error reading it ends in, of which archives have many kinds."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except pandas.errors.EmptyDataError:
        raise TableError(f"{path}: the file is empty") from None
    except Exception as error:
        if isinstance(error, UnicodeDecodeError) and path.suffix.lower() != ".parquet":
            raise TableError(f"{path}: not a text file in UTF-8 (byte {error.start})") from error
        raise TableError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error


def _last_known_line(frame: Any) -> int:
    """The line, from 1, of the first row with a cell of several lines; without one, of the last."""
    broken = frame.apply(lambda column: column.str.contains(r"[\r\n]", na=False)).any(axis=1)
    return int(frame.index[broken.argmax() if broken.any() else -1]) + 1


def _is_blank_line(
    content: bytes, frame: Any, empty: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which rows without a value of a CSV file are blank lines, and no rows such as ``,``."""
    blank = np.zeros(len(frame), bool)
    if frame.shape[1] > 1 and empty.any():
        lines = content.splitlines()
        breaks = frame.apply(lambda column: column.str.count(r"\r\n|\r|\n")).sum(axis=1).to_numpy()
        first = frame.index.to_numpy() + np.cumsum(breaks).astype(int) - breaks.astype(int)
        blank[empty] = [line < len(lines) and not lines[line].strip() for line in first[empty]]
    return blank


def _as_cells(path: Path, frame: Any) -> Cells:
    """The cells of a frame that a Parquet file holds."""
    for name in frame.index.names:
        if name is not None and name in frame.columns:
            raise TableError(f"{path}: the index and a column are both named {name!r}")
    # Text of a float has all its digits.
    text = frame.apply(
        lambda column: column.astype(object).where(column.notna(), "").map(str).str.strip()
    )
    header, numbers = [str(name) for name in frame.columns], list(range(1, len(frame) + 1))
    return Cells(path, header, text, frame, numbers)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python takes between digits
