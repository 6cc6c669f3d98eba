"""Files of tables, read by pandas: how a CSV file is written is found out where that is sure."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

__all__ = ["UNKNOWN", "Format", "TableFile", "check_columns", "read_file", "refuse"]

_MISSING = ("", "?", "#n/a", "<na>", "n/a", "na", "nan", "none", "null")
_BINARY = re.compile(r"[\0-\x08\x0e-\x1f\x7f-\x9f]")
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_PARQUET, _FEATHER = (".parquet", ".pq"), (".feather", ".arrow")
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}
_LINES = 100
_TELL = "--separator, --decimal and --encoding say how it is written"


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a table's file is written.

    :param separator: Between columns of a CSV file (default: found out).
    :param decimal: Before decimals (default: found out).
    :param encoding: Of the text, such as latin-1 (default: found out).
    :param missing: Marks of missing values, besides empty cells, NA, n/a, nan, none, null, #N/A
        and ?.
    """

    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()


UNKNOWN = Format()


class TableFile(NamedTuple):
    """What a file holds, and lines that say what was found out of it.

    :param frame: A data frame with an index from 0: columns of numbers and times as pandas has
        them, or of text without blanks around it; missing cells are missing.
    :param original: The same rows as the file has them, to be written again.
    :param format: How a CSV file is written; of other files the separator is None.
    """

    path: Path
    frame: Any
    original: Any
    format: Format
    notes: tuple[str, ...]


def refuse(where: object, problems: Sequence[str]) -> None:
    """Raise a :class:`TableError` that tells all problems of a table at once; "" is none."""
    problems = [problem for problem in problems if problem]
    if len(problems) == 1:
        raise TableError(f"{where}: {problems[0]}")
    if problems:
        raise TableError("\n  ".join([f"{where} has {len(problems)} problems:", *problems]))


def read_file(path: str | Path, form: Format = UNKNOWN) -> TableFile:
    """Read a table with names of columns.

    :param path: A Parquet file (.parquet, .pq), a Feather file (.feather, .arrow), or else a CSV
        file with a header line, which may be packed (.gz, .zip, ...).
    :param form: What is known of a CSV file.
    :raises TableError: If the file cannot be read, is empty, or has no names of columns.
    :raises ImportError: If pandas, or for Parquet and Feather pyarrow, is not installed.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.exists() or path.is_dir():
        raise TableError(f"{path}: {'a directory, not a' if path.is_dir() else 'no such'} file")
    if suffix in _SPREADSHEETS:
        raise TableError(f"{path}: a spreadsheet; save the sheet as a CSV file")
    pandas = import_optional("pandas", "cli")
    if suffix in (*_PARQUET, *_FEATHER):
        import_optional("pyarrow", "cli")
    try:
        if suffix in (*_PARQUET, *_FEATHER):
            read = pandas.read_parquet if suffix in _PARQUET else pandas.read_feather
            frame, notes = _with_index(read(path)), list[str]()
            form = replace(form, separator=None)
        else:
            with pandas.io.common.get_handle(path, "rb", compression="infer", is_text=False) as f:
                frame, form, notes = _read_text(f.handle.read(), form)
    except MemoryError:
        raise
    except TableError as error:
        raise TableError(f"{path}: {error}") from error.__cause__
    except Exception as error:  # of which archives and pyarrow have many kinds
        hint = f"; {_TELL}" if isinstance(error, pandas.errors.ParserError) else ""
        raise TableError(f"{path}: cannot be read: {' '.join(str(error).split())}{hint}") from error
    if all(re.fullmatch(r"[+-]?\d[\d.,eE+-]*", name) for name in frame):
        raise TableError(f"{path}: the first line holds numbers; a header line is needed")
    original = frame.set_axis(range(len(frame)), axis=0)
    cleaned, problems = [original.iloc[:, :0]], list[str]()
    for place in range(original.shape[1]):
        try:
            cleaned.append(_cleaned(original.iloc[:, place], form))
        except TableError as error:
            problems.append(str(error))
    refuse(path, problems)
    frame = pandas.concat(cleaned, axis=1)
    return TableFile(path, frame, original, form, tuple(f"{path}: {note}" for note in notes))


def check_columns(where: object, frame: Any, names: Iterable[str], role: str) -> None:
    """Refuse a table in which columns of some role are missing, or are there twice."""
    header = Counter(frame)
    missing = [name for name in names if name not in header]
    if missing:
        known = [name for name in header if name]
        close = get_close_matches(missing[0], known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        hint = f"; {_TELL}" if len(known) == 1 else hint
        raise TableError(
            f"{where}: no {role} column {', '.join(map(repr, missing))}; the columns are "
            f"{', '.join(map(repr, known))}{hint}"
        )
    for name in names:
        if header[name] > 1:
            raise TableError(f"{where}: two columns are named {name!r}")


def _with_index(frame: Any) -> Any:
    """A frame whose named index is columns."""
    frame = frame.set_axis([str(name) for name in frame], axis=1)
    levels = [name for name in frame.index.names if name is not None]
    for name in levels:
        if name in frame.columns:
            raise TableError(f"the index and a column are both named {name!r}")
    return frame.reset_index(levels) if levels else frame


def _cleaned(column: Any, form: Format) -> Any:
    """A column of text without blanks and marks of missing values; others as they are."""
    pandas = import_optional("pandas", "cli")
    types = pandas.api.types
    if types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if types.is_datetime64_any_dtype(column) or types.is_numeric_dtype(column):
        return column
    missing, cells = column.isna().to_numpy(), column.to_numpy(object, copy=True)
    kinds = {type(cell).__name__ for cell in cells[~missing]}
    if kinds & {"list", "dict", "ndarray", "bytes", "tuple"}:
        raise TableError(f"column {column.name!r} holds {', '.join(kinds)}, and no numbers or text")
    marks = {*_MISSING, *(mark.strip().lower() for mark in form.missing)}
    rows = np.flatnonzero(~missing)  # as fast in wide tables, of short columns, as in long
    found = [str(cell).strip() for cell in cells[rows]]
    if form.decimal == ",":
        others = {cell for cell in found if "." in cell and not _COMMA.fullmatch(cell)}
        has_thousands = all(map(_THOUSANDS.fullmatch, others))
        for index, cell in enumerate(found):
            if _COMMA.fullmatch(cell) or (has_thousands and cell in others):
                found[index] = cell.replace(".", "").replace(",", ".")
    cells[rows] = [np.nan if cell.lower() in marks else cell for cell in found]
    return pandas.Series(cells, column.index, object, name=column.name)


def _read_text(content: bytes, form: Format) -> tuple[Any, Format, list[str]]:
    """The cells of a CSV file as text."""
    pandas = import_optional("pandas", "cli")
    text, encoding, notes = _decode(content, form.encoding)
    lines, separator = text.splitlines(keepends=True), form.separator
    while lines and (not lines[0].strip() or lines[0].startswith(("#", "sep="))):
        line = lines.pop(0).rstrip("\r\n")
        if line.startswith("sep="):
            separator = separator or line[4:5]
        elif line.strip():
            notes.append(f"the line {line.strip()[:30]!r} is a comment")
    if not lines:
        raise TableError("the file is empty")
    separator = separator or _find_separator(lines[:_LINES])
    header, *rows = _split(lines[:_LINES], separator)
    if {len(row) for row in rows} == {len(header) + 1}:
        # A separator ends each row, or the rows have names that the header leaves out, as R writes.
        ends = all(not row[-1] for row in rows)
        first = lines[0].rstrip("\r\n")
        lines[0] = (f"{first}{separator}" if ends else f'""{separator}{first}') + "\n"
    original = pandas.read_csv(
        io.StringIO("".join(lines)),
        sep=r"\s+" if separator == " " else separator,
        header=None,
        index_col=False,
        dtype=str,
        keep_default_na=False,
        skipinitialspace=separator != "\t",
    )
    header = [str(name).strip() for name in original.iloc[0]]
    original = original.iloc[1:].set_axis(header, axis=1).reset_index(drop=True).fillna("")
    is_kept = [bool(name) or (original.iloc[:, i] != "").any() for i, name in enumerate(header)]
    original = original.loc[:, is_kept]
    if separator != "," and form.separator is None:
        notes.append(f"columns are separated by {_SEPARATORS.get(separator, separator)}")
    decimal = form.decimal or ("," if separator != "," and _has_commas(original) else ".")
    if decimal == "," and form.decimal is None:
        notes.append("decimals are behind commas")
    return original, replace(form, separator=separator, decimal=decimal, encoding=encoding), notes


def _decode(content: bytes, encoding: str | None) -> tuple[str, str, list[str]]:
    """The text of a file, its encoding, and what is to be said of that."""
    has_mark = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    guessed = ["utf-16"] if has_mark else ["utf-8-sig", "cp1252"]  # Windows' latin-1
    name, text = encoding or ("utf-16" if has_mark else "UTF-8"), ""
    for found in [encoding] if encoding else guessed:
        with contextlib.suppress(LookupError, UnicodeError):
            text = content.decode(found)
            break
    else:
        raise TableError(f"not a text file in {name}; --encoding names another")
    wrong = _BINARY.search(text)
    if wrong:
        place = f"line {text[: wrong.start()].count(chr(10)) + 1} holds the byte {ord(wrong[0])}"
        raise TableError(f"not a text file in {name}: {place}; --encoding names another")
    notes = []
    if encoding is None and found != "utf-8-sig":
        found_name = found.replace("cp1252", "latin-1")
        notes.append(f"the text is not UTF-8, and read as {found_name}; --encoding names another")
    return text, found, notes


def _split(lines: list[str], separator: str) -> list[list[str]]:
    """The cells of lines that are not blank; several blanks are one separator."""
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    return [[cell for cell in row if cell] for row in rows] if separator == " " else rows


def _find_separator(lines: list[str]) -> str:
    """What divides the header and all rows into as many columns; a comma where nothing does."""
    for separator in _SEPARATORS:
        header, *rows = _split(lines, separator)
        widths = {len(row) for row in rows} or {len(header)}
        allowed = {len(header), len(header) + (separator in "\t ")}  # as R's names of rows
        if len(header) > 1 and len(widths) == 1 and max(widths) > 1 and widths <= allowed:
            return separator
    return next((separator for separator in ",\t;|" if separator in lines[0]), ",")


def _has_commas(frame: Any) -> bool:
    """Whether there are numbers with decimal commas, and none with points."""
    cells = [cell.strip() for cell in frame.to_numpy().ravel()]
    return any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))
