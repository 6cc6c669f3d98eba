"""Options and tables that cannot be used are refused in one line that says where and why."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pandas as pd
from command_line import columns, declared_options
from cyclopts import Argument
from faults.conftest import FIT, command, not_refused
from faults.states import read_tree

IN_SHORT = 20
# Of each type of option, what it is not.
BAD_VALUES = {int: ("-1", "x", "", "nan"), float: ("-0.1", "1.5", "inf", "x", "")}
# What each command needs besides.
NEEDED = {
    "fit": ("table.csv", "--target", "price"),
    "predict": ("run", "table.csv", "-o", "p.csv"),
    "evaluate": ("run", "table.csv"),
    "export": ("run", "-o", "program"),
}
T = ("fit", "table.csv", "--target", "price")
# Those that tests of the commands do not have.
MISTAKES: list[tuple[tuple[str, ...], str]] = [
    ((*T, "--depth", "x"), "--depth"),
    (("fit", "--resume", "table.csv"), "table.csv"),
    (("predict", "run", "table.csv", "-o", "run/model/model.zip"), "model.zip"),
    (("evaluate", "run", "run"), "run"),
    (("export", "run", "-o", "run/model"), "run/model"),
    (("info", "table.csv"), "table.csv"),
    (("completion", "nope"), "nope"),
]
TABLE = columns("regression", 12)


def bad_options() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each option of each command with each value that is none of its type."""
    for name, option in declared_options():
        if name not in NEEDED or option.is_positional_only() or option.name == "WHAT":
            continue
        needed, keyword = NEEDED[name], option.name
        if keyword in needed:  # a list cannot come twice
            place = needed.index(keyword)
            needed = (*needed[:place], *needed[place + 2 :])
        values = BAD_VALUES.get(_type_of(option), ())
        if option.get_choices(force=True):
            values = ("", "nope", f"{option.get_choices(force=True)[0]}x")
        for value in values:
            yield (name, *needed, f"{keyword}={value}"), keyword
        number = option.parameter.consume_multiple
        if not option.is_flag() and not (isinstance(number, tuple) and number[0] == 0):
            yield (name, *needed, keyword), keyword


def _type_of(option: Argument) -> type:
    """A number's type, also where None is allowed."""
    hints = [getattr(hint, "__origin__", hint) for hint in (option.hint, *get_args(option.hint))]
    return next((kind for kind in BAD_VALUES if kind in hints), str)


def test_options_of_no_use_are_refused(untrained: Path, some: Any) -> None:
    before, wrong = read_tree(untrained), list[str]()
    for arguments, pattern in [*some([*bad_options()], IN_SHORT), *MISTAKES]:
        wrong += not_refused(command(*arguments), pattern, " ".join(arguments))
        if read_tree(untrained) != before:
            wrong.append(f"{' '.join(arguments)} changes files")
            before = read_tree(untrained)
    assert not wrong, "\n".join(wrong)


def text(**others: list[Any]) -> bytes:
    """The table with other columns, as CSV."""
    return pd.DataFrame({**TABLE, **others}).to_csv(index=False).encode()


GOOD = text()
# In the place of a number; what a table may have besides is with the tests of reading.
CELLS = ("1.7e308", "1,5", "1.2.3", "0x10", "1e", "TRUE", "2020-01-01", "1+2j", "9" * 400)
PACKERS = {"gz": gzip.compress, "xz": lzma.compress}
Row = tuple[str, "bytes | Callable[[Path], object]", str]


def bad_cells() -> Iterator[Row]:
    """Each bad cell of an input; what cannot be scaled is no matter of a row."""
    for cell in CELLS:
        values = list(TABLE["b"])
        values[5] = cell
        yield "t.csv", text(b=values), "'b'.*row 6|too (large|far)"


def damaged_archives() -> Iterator[Row]:
    """Each way of packing, damaged in each way."""
    for suffix, pack in PACKERS.items():
        whole = pack(GOOD)
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 64]) + whole[middle + 1 :]
        for damaged in (b"", GOOD, whole[:middle], flipped, pack(b""), pack(bytes(range(256)))):
            yield f"t.csv.{suffix}", damaged, f"t.csv.{suffix}"
    yield "t.csv.zst", GOOD, "t.csv.zst"


def bad_files() -> Iterator[Row]:
    """Other things that are wrong with a file."""
    lines = GOOD.splitlines(keepends=True)
    quoted = b"".join([*lines[:4], b'"' + lines[4], *lines[5:]])
    for damaged in (b"\n\n\n", bytes(range(256)) * 8, GOOD.decode().encode("cp037"), quoted):
        yield "t.csv", damaged, "t.csv"
    yield "t.csv", text(b=[f"{i}e305" for i in range(12)]), "too (large|far)"
    for value in ({"x": 1}, b"x", None, float("inf")):
        frame = pd.DataFrame({**TABLE, "a": [value] * 12})
        yield "t.parquet", frame.to_parquet, "'a'"


def test_tables_of_no_use_are_refused(untrained: Path, some: Any) -> None:
    rows = [*bad_cells(), *damaged_archives(), *bad_files()]
    cases = [(row, name) for row in rows for name in ("fit", "predict")]
    wrong = []
    for number, ((file, made, pattern), name) in enumerate(some(cases, IN_SHORT)):
        folder = untrained / str(number)
        folder.mkdir()
        path = folder / file
        made(path) if callable(made) else path.write_bytes(made)
        to_fit = ("fit", path, *FIT[1:], "--out", folder / "out")
        given = to_fit if name == "fit" else ("predict", "run", path, "-o", folder / "p.csv")
        wrong += not_refused(command(*given), pattern, f"{name} {file}, case {number}")
        if left := {each.name for each in folder.iterdir()} - {file}:
            wrong.append(f"{name} {file}, case {number}, leaves {left}")
    assert not wrong, "\n".join(wrong)
