"""Files of tables, read by pandas: how a CSV file is written is found out where that is sure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from gpflow_dwp.exceptions import TableError
from gpflow_dwp.optional import import_optional

__all__ = ["Format", "TableFile", "check_columns", "read_file", "refuse"]

_MISSING = ("", "?", "#n/a", "<na>", "n/a", "na", "nan", "none", "null")
_MARKS = {"utf-8-sig": b"\xef\xbb\xbf", "utf-32": b"\xff\xfe\0\0", "utf-16": b"\xff\xfe"}
_BINARY = re.compile(r"[\0-\x08\x0e-\x1f\x7f-\x9f]")
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_SEPARATORS = (",", "\t", ";", "|", " ")
_NAMES = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons", "|": "bars"}
_WITH_INDEX = ("\t", " ")
_LINES = 100
_TELL = "--separator, --decimal and --encoding say how it is written"


@dataclass(frozen=True)
class Format:
    """How a table's file is written.

    :param separator: Between columns of a CSV file; None to find it out.
    :param decimal: The sign before decimals, "." or ","; None to find it out.
    :param encoding: Of the text; None to find it out.
    :param missing: Texts that mark a missing value, besides an empty cell, NA, n/a, nan, none,
        null and ?.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()


_UNKNOWN = Format()


class TableFile(NamedTuple):
    """What a file holds.

    :param path: The file.
    :param frame: A data frame with an index from 0: columns of numbers and times as pandas has
        them, or of text without blanks around it; missing cells are missing.
    :param original: The same rows as the file has them, to be written again.
    :param format: How a CSV file is written.
    :param notes: Lines that say what was found out.
    """

    path: Path
    frame: Any
    original: Any
    format: Format
    notes: tuple[str, ...]

    @property
    def is_text(self) -> bool:
        """Whether the file has text only, of which the types of columns are not known."""
        return self.format.separator is not None


def refuse(where: object, problems: Sequence[str]) -> None:
    """Tell all problems of a table at once.

    :raises TableError: If there is one.
    """
    if len(problems) == 1:
        raise TableError(f"{where}: {problems[0]}")
    if problems:
        raise TableError("\n  ".join([f"{where} has {len(problems)} problems:", *problems]))


def read_file(path: str | Path, form: Format = _UNKNOWN) -> TableFile:
    """Read a table with names of columns.

    :param path: A Parquet file (.parquet, .pq), a Feather file (.feather, .arrow), or else a CSV
        file with a header line, which may be packed (.gz, .zip, ...).
    :param form: What is known of a CSV file.
    :raises TableError: If the file cannot be read, is empty, or has no names of columns.
    :raises ImportError: If pandas, or for Parquet and Feather pyarrow, is not installed.
    """
    pandas = import_optional("pandas", "cli")
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.exists():
        raise TableError(f"{path}: no such file")
    if path.is_dir():
        raise TableError(f"{path}: a directory, not a file")
    if suffix in _SPREADSHEETS:
        raise TableError(f"{path}: a spreadsheet; save the sheet as a CSV file")
    try:
        if suffix in (".parquet", ".pq", ".feather", ".arrow"):
            import_optional("pyarrow", "cli")
            is_parquet = suffix in (".parquet", ".pq")
            original = (pandas.read_parquet if is_parquet else pandas.read_feather)(path)
            frame, notes = _with_index(original), list[str]()
            form = replace(form, separator=None)
        else:
            with pandas.io.common.get_handle(path, "rb", compression="infer", is_text=False) as f:
                content = f.handle.read()
            original, form, notes = _read_text(content, form)
            frame = original
    except MemoryError:
        raise
    except TableError as error:
        raise TableError(f"{path}: {error}") from error.__cause__
    except Exception as error:  # of which archives and pyarrow have many kinds
        if isinstance(error, ImportError) and error.name == "pyarrow":
            raise
        hint = f"; {_TELL}" if isinstance(error, pandas.errors.ParserError) else ""
        raise TableError(f"{path}: cannot be read: {' '.join(str(error).split())}{hint}") from error
    if all(re.fullmatch(r"[+-]?\d[\d.,eE+-]*", name) for name in frame):
        raise TableError(f"{path}: the first line holds numbers; a header line is needed")
    frame = frame.set_axis(range(len(frame)), axis=0).copy()
    problems = []
    for place in range(frame.shape[1]):
        try:
            frame.isetitem(place, _cleaned(pandas, frame.iloc[:, place], form))
        except TableError as error:
            problems.append(str(error))
    refuse(path, problems)
    return TableFile(path, frame, original, form, tuple(f"{path}: {note}" for note in notes))


def check_columns(where: object, header: Sequence[str], names: Iterable[str], role: str) -> None:
    """Refuse a table in which columns are missing, or are there twice.

    :param header: The names of its columns.
    :param names: Columns that must be there.
    :param role: What they are, for the message.
    :raises TableError: If one is not.
    """
    missing = [name for name in names if name not in header]
    if missing:
        known = [name for name in header if name]
        listed = ", ".join(map(repr, missing))
        message = f"{where}: no {role} column {listed}; the columns are "
        close = get_close_matches(missing[0], known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        hint = f"; {_TELL}" if len(known) == 1 else hint
        raise TableError(message + ", ".join(map(repr, known)) + hint)
    for name in names:
        if list(header).count(name) > 1:
            raise TableError(f"{where}: two columns are named {name!r}")


def _with_index(frame: Any) -> Any:
    """A frame whose named index is columns."""
    frame = frame.set_axis([str(name) for name in frame], axis=1)
    levels = [name for name in frame.index.names if name is not None]
    for name in levels:
        if name in frame.columns:
            raise TableError(f"the index and a column are both named {name!r}")
    return frame.reset_index(levels) if levels else frame


def _cleaned(pandas: Any, column: Any, form: Format) -> Any:
    """A column of text without blanks and marks of missing values; others as they are."""
    types = pandas.api.types
    if types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if types.is_datetime64_any_dtype(column) or types.is_numeric_dtype(column):
        return column
    column = column.astype(object)
    kinds = {type(value).__name__ for value in column.dropna()}
    if kinds & {"date", "datetime", "Timestamp"}:
        return pandas.to_datetime(column)
    if kinds & {"list", "dict", "ndarray", "bytes", "tuple"}:
        raise TableError(f"column {column.name!r} holds {', '.join(kinds)}, and no numbers or text")
    column = column.where(column.isna(), column.map(str)).str.strip()
    marks = {*_MISSING, *(mark.strip().lower() for mark in form.missing)}
    column = column.mask(column.str.lower().isin(marks))
    if form.decimal == ",":
        has_comma = column.str.fullmatch(_COMMA).fillna(False).astype(bool)
        plain = column.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        column = column.mask(has_comma, plain)
    return column


def _read_text(content: bytes, form: Format) -> tuple[Any, Format, list[str]]:
    """The cells of a CSV file as text."""
    pandas = import_optional("pandas", "cli")
    text, encoding, notes = _decode(content, form.encoding)
    lines = text.splitlines(keepends=True)
    separator = form.separator
    while lines and (not lines[0].strip() or lines[0].startswith("#") or lines[0][:4] == "sep="):
        line = lines.pop(0)
        if line[:4] == "sep=":
            separator = separator or line[4:].rstrip("\r\n")[:1]
        elif line.strip():
            notes.append(f"the line {line.strip()[:30]!r} is a comment")
    if not lines:
        raise TableError("the file is empty")
    separator = separator or _find_separator(lines[:_LINES])
    rows = [row for row in csv.reader(lines[:_LINES], delimiter=separator) if row]
    if separator == " ":
        rows = [[cell for cell in row if cell] for row in rows]
    width = {len(row) for row in rows[1:]}
    if width == {len(rows[0]) + 1}:  # as R writes names of rows, or a comma ends each line
        ends = all(not row[-1] for row in rows[1:])
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
    blank = [not name and (original.iloc[:, i] == "").all() for i, name in enumerate(header)]
    original = original.loc[:, [not is_blank for is_blank in blank]]
    if separator != "," and form.separator is None:
        notes.append(f"columns are separated by {_NAMES.get(separator, separator)}")
    decimal = form.decimal or (_find_decimal(original) if separator != "," else ".")
    if decimal == "," and form.decimal is None:
        notes.append("decimals are behind commas")
    return original, replace(form, separator=separator, decimal=decimal, encoding=encoding), notes


def _decode(content: bytes, encoding: str | None) -> tuple[str, str, list[str]]:
    """The text of a file, its encoding, and what is to be said of that."""
    notes = []
    if encoding is None:
        encoding = next((name for name, mark in _MARKS.items() if content.startswith(mark)), None)
        encoding = encoding or ("utf-16" if content.startswith(b"\xfe\xff") else None)
        zeros = [content[start:1000:2].count(0) for start in (0, 1)]
        if encoding is None and 0 < 2 * max(zeros) > len(content[:1000]) // 2 and 0 in zeros:
            encoding = "utf-16-le" if zeros[1] else "utf-16-be"
        if encoding is None:
            try:
                content.decode()
                encoding = "utf-8"
            except UnicodeDecodeError:
                encoding = "cp1252"
        if encoding not in ("utf-8", "utf-8-sig"):
            name = "latin-1" if encoding == "cp1252" else encoding
            notes.append(f"the text is not UTF-8, and read as {name}; --encoding names another")
    try:
        text = content.decode(encoding)
    except (LookupError, UnicodeError) as error:
        name = "UTF-8" if encoding == "cp1252" else encoding
        raise TableError(f"not a text file in {name}; --encoding names another") from error
    wrong = _BINARY.search(text)
    if wrong:
        line = text[: wrong.start()].count("\n") + 1
        name = "UTF-8" if encoding in ("utf-8", "cp1252") else encoding
        raise TableError(
            f"not a text file in {name}: line {line} holds the byte {ord(wrong[0])}; "
            "--encoding names another"
        )
    return text, encoding, notes


def _find_separator(lines: list[str]) -> str:
    """What divides the header and all rows into as many columns; a comma where nothing does."""
    for separator in _SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        if separator == " ":
            rows = [[cell for cell in row if cell] for row in rows]
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        header = {len(rows[0]), len(rows[0]) + (separator in _WITH_INDEX)}
        if len(widths) == 1 and max(widths) > 1 and len(rows[0]) > 1 and widths <= header:
            return separator
    first = lines[0]
    return "," if "," in first else next((s for s in ("\t", ";", "|") if s in first), ",")


def _find_decimal(frame: Any) -> str:
    """A comma, if a column has numbers with it, and none has a point."""
    cells = [frame.iloc[:, place].str.strip() for place in range(frame.shape[1])]
    filled = [column[~column.str.lower().isin(_MISSING)] for column in cells]
    whole = re.compile(r"[+-]?\d+")

    def any_with(pattern: re.Pattern[str]) -> bool:
        return any(
            len(column) > 0
            and column.str.fullmatch(pattern).any()
            and (column.str.fullmatch(pattern) | column.str.fullmatch(whole)).all()
            for column in filled
        )

    return "," if any_with(_COMMA) and not any_with(_POINT) else "."
