"""Tables that cannot be used are refused in one line that says where and why."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from command_line import columns
from faults.conftest import FEW, FIT, finish_run, some
from faults.outcomes import Tally, command

PART = "bad tables"
IN_SHORT = 40
TABLE = columns("regression", 12)
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
# In the place of a number.
CELLS = (
    *("", " ", "NaN", "inf", "-inf", "1e400", "1.7e308", "-1.7e308", "x", "1,5", "1.2.3", "0x10"),
    *("1e", "TRUE", "2020-01-01", "1+2j", "1\0", "9" * 400),
)


class Row(NamedTuple):
    """A file, how ``fit`` and ``predict`` take it, and a pattern of what they say."""

    name: str
    content: bytes | Callable[[Path], object]
    piece: str
    commands: tuple[str, ...] = ("fit", "predict")
    options: tuple[str, ...] = ()


def text(table: dict[str, Any], separator: str = ",") -> str:
    """A table as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return file.getvalue()


def with_cell(column: str, cell: str, row: int = 5) -> dict[str, Any]:
    values = list(TABLE[column])
    values[row] = cell
    return {**TABLE, column: values}


def parquet(**changes: Any) -> Callable[[Path], object]:
    """Write a table with other columns."""
    return lambda path: pd.DataFrame({**TABLE, **changes}).to_parquet(path)


def zipped(*members: str, content: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member in members:
            archive.writestr(member, content or GOOD)
    return file.getvalue()


def tarred(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("t.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


GOOD = text(TABLE).encode()
LINES = GOOD.decode().splitlines(keepends=True)
LABELS = {**TABLE, "price": ["yes", "no"] * 6}
CLASSES = ("--task", "classification")


def cells() -> list[Row]:
    """Each bad cell, in an input and in the target; what cannot be scaled is no matter of a row."""
    rows = []
    for cell in CELLS:
        is_missing = cell.strip() in ("", "NaN")  # without a target, a row is left out
        for column, commands in (("b", ("fit", "predict")), ("price", ("fit",)))[: 2 - is_missing]:
            content = text(with_cell(column, cell)).encode()
            rows.append(
                Row("t.csv", content, f"'{column}'.*row 6|too (large|far)|the byte 0", commands)
            )
    return rows


def packed() -> list[Row]:
    """Each way of packing, damaged in each way."""
    rows = []
    for suffix, pack in PACKERS.items():
        whole = pack(GOOD)
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 64]) + whole[middle + 1 :]
        for content in (b"", GOOD, whole[:middle], flipped, pack(b""), pack(bytes(range(256)))):
            rows.append(Row(f"t.csv{suffix}", content, f"t.csv{suffix}"))
    archives = (b"", GOOD, zipped(), zipped("a", "b"), zipped("a")[:60], zipped("a", content=b"\0"))
    rows += [Row("t.csv.zip", content, "t.csv.zip") for content in archives]
    encrypted = bytearray(zipped("a"))
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    rows.append(Row("t.csv.zip", bytes(encrypted), "t.csv.zip"))
    for content in (b"", GOOD, tarred(GOOD)[:600], tarred(b"")):
        rows.append(Row("t.csv.tar", content, "t.csv.tar"))
    return [
        *rows,
        Row("t.csv.zst", GOOD, "t.csv.zst"),
        Row("t.csv.7z", b"7z\xbc\xaf\x27\x1c", "t.csv.7z"),
    ]


def structures() -> list[Row]:
    """Other things that are wrong with a file."""
    more = "".join([*LINES[:4], LINES[4].rstrip() + ",1,2\n", *LINES[5:]])
    open_quote = "".join([*LINES[:4], '"' + LINES[4], *LINES[5:]])
    return [
        Row("t.csv", b"", "t.csv"),
        Row("t.csv", b"\n\n\n", "t.csv"),
        Row("t.csv", LINES[0].encode(), "t.csv.*(row|header)"),
        Row("t.csv", bytes(range(256)) * 8, "t.csv"),
        Row("t.csv", b"\x89PNG\r\n\x1a\n" + bytes(99), "t.csv"),
        Row("t.csv", more.encode(), "t.csv"),
        Row("t.csv", GOOD.decode().encode("cp037"), "t.csv"),
        Row("t.csv", open_quote.encode(), "t.csv"),
        Row("t.csv", GOOD.replace(b"a,b", b"a,a"), "t.csv.*'?a'?"),
        Row("t.csv", GOOD.replace(b"a,b", b",b"), "'a'", ("predict",)),
        Row("t.csv", GOOD.replace(b"a,b", b"c,d"), "a.*(not|no) ", ("predict",)),
        Row("t.csv", GOOD.replace(b"price", b"cost"), "price", ("fit",)),
        Row("t.csv", text(TABLE, "^").encode(), "--separator"),
        Row("t.csv", b"".join(line.encode() for line in LINES[:6]), "10", ("fit",)),
        Row("t.csv", text({"price": TABLE["price"]}).encode(), "only column|'a'"),
        Row("t.csv", text({**TABLE, "price": [1.0] * 12}).encode(), "constant", ("fit",)),
        Row("t.csv", text({**TABLE, "a": [""] * 12}).encode(), "'a'"),
        Row(
            "t.csv",
            text({**TABLE, "b": [f"{i}e305" for i in range(12)]}).encode(),
            "too (large|far)",
        ),
        Row("t.csv", lambda path: path.mkdir(), "directory"),
        Row("t.csv", lambda path: None, "t.csv.*(exist|no such|not a file)"),
        Row("t.csv", text(LABELS).encode(), "not numeric", ("fit",)),
        Row("t.csv", text({**TABLE, "price": ["x"] * 12}).encode(), "class", ("fit",), CLASSES),
        Row("t.csv", GOOD, "price|label|class", ("fit",), CLASSES),
        Row(
            "t.csv", text(LABELS).encode(), "'nope'", ("fit",), (*CLASSES, "--categorical", "nope")
        ),
        Row("t.csv", GOOD, "price", ("fit",), ("--categorical", "price")),
        Row("t.csv", text(with_cell("a", "")).encode(), "--impute", ("fit",)),
        Row("t.csv", text(LABELS).encode(), "--task", ("fit",)),
        *parquets(),
    ]


def parquets() -> list[Row]:
    def cut(path: Path) -> None:
        pd.DataFrame(TABLE).to_parquet(path)
        path.write_bytes(path.read_bytes()[:-100])

    def indexed(path: Path) -> None:
        pd.DataFrame(TABLE).set_index(pd.Index(range(12), name="a"), drop=False).to_parquet(path)

    name, times = "t.parquet", pd.date_range("2020", periods=12)
    return [
        Row(name, GOOD, name),
        Row(name, b"", name),
        Row(name, cut, name),
        Row(name, indexed, "'a'"),
        Row(name, lambda path: pd.DataFrame(TABLE).iloc[:0].to_parquet(path), name),
        Row(name, parquet(a=[[1.0, 2.0]] * 12), "'a'"),
        Row(name, parquet(a=[{"x": 1}] * 12), "'a'"),
        Row(name, parquet(a=times), "'a'", ("predict",)),
        Row(name, parquet(a=[b"x"] * 12), "'a'"),
        Row(name, parquet(a=[None] * 12), "'a'"),
        Row(name, parquet(a=pd.Categorical(["x", "y"] * 6)), "'a'", ("predict",)),
        Row(name, parquet(a=[float("inf")] * 12), "'a'"),
        Row(name, parquet(price=times), "'price'", ("fit",)),
    ]


@pytest.mark.usefixtures("quick")
def test_tables_of_no_use_are_refused(
    here: Path, tally: Tally, is_long: bool, request: pytest.FixtureRequest
) -> None:
    finish_run()
    request.getfixturevalue("no_training")
    rows = [*cells(), *packed(), *structures()]
    cases = [(row, name) for row in rows for name in row.commands]
    for number, (row, name) in enumerate(some(cases, is_long, IN_SHORT)):
        folder = here / str(number)
        folder.mkdir()
        path = folder / row.name
        row.content(path) if callable(row.content) else path.write_bytes(row.content)
        if name == "fit":
            given = ("fit", path, *FIT[1:], *FEW, "--out", folder / "out", *row.options)
        else:
            given = ("predict", "run", path, "-o", folder / "p.csv")
        outcome = command(*given)
        tally.add_refusal(outcome, row.piece, f"{name} {row.name}, row {number}")
        left = {path.name for path in folder.iterdir()} - {row.name}
        if left:
            tally.add("lost", f"{name} {row.name}, row {number}, leaves {left}")
