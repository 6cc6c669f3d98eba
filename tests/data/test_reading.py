"""Files of tables: how they are written is found out, and a user is told what cannot be read."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pandas
import pytest

from gpflow_dwp.data import Table
from gpflow_dwp.data.reading import Format, read_file
from gpflow_dwp.data.table import read_to_split
from gpflow_dwp.exceptions import TableError

HEADER = ["a", "b", "y"]
ROWS = [[str(i), f"{0.25 * i * i}", f"{i % 5}.5"] for i in range(12)]
LABELS = ["red" if i % 3 else "blue" for i in range(12)]


def read_table(path: Path, target: str, task: Any = "regression") -> Table:
    """All rows, as numbers."""
    return read_to_split(path, target, task).encode(slice(None))[0]


def text(
    rows: list[list[str]] = ROWS, header: list[str] = HEADER, sep: str = ",", end: str = "\n"
) -> str:
    return "".join(sep.join(row) + end for row in [header, *rows])


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def with_cell(cell: str, row: int = 3, column: int = 1) -> list[list[str]]:
    rows = [list(row) for row in ROWS]
    rows[row - 1][column] = cell
    return rows


def labelled(labels: list[object]) -> str:
    return text([[str(i), str(label)] for i, label in enumerate(labels)], ["a", "label"])


COMMAS = [[cell.replace(".", ",") for cell in row] for row in ROWS]
WRITTEN = {
    "commas": (text(), ""),
    "semicolons": (text(sep=";"), "separated by semicolons"),
    "decimal commas": (text(COMMAS, sep=";"), "decimals are behind commas"),
    "tabs": (text(sep="\t"), "separated by tabs"),
    "bars": (text(sep="|"), "separated by bars"),
    "spaces": (text(sep="  "), "separated by spaces"),
    "Excel": ("sep=;\n" + text(sep=";"), "separated by semicolons"),
    "comments": ("# from a logger\n#\n" + text(), "'# from a logger' is a comment"),
    "blank lines": ("\n \n" + text().replace("\n", "\n\n"), ""),
    "mark": (text().encode("utf-8-sig"), ""),
    "commas at ends": (text(end=",\n"), ""),
    "commas at ends of rows": (text().replace(".5\n", ".5,\n"), ""),
    "quotes": (text([[f'"{cell}"' for cell in row] for row in ROWS]), ""),
    "blanks": (text([[f" {cell} " for cell in row] for row in ROWS]), ""),
    "R's write.table": (
        '"a" "b" "y"\n' + text([[f'"{i}"', *row] for i, row in enumerate(ROWS, 1)], ["x"], " ")[2:],
        "columns without a name are left out",
    ),
    "pandas' to_csv": (
        text([[str(i), *row] for i, row in enumerate(ROWS)], ["", *HEADER]),
        "columns without a name are left out",
    ),
    "UTF-16": (text().encode("utf-16"), "read as utf-16"),
    "latin-1": (text(header=["a", "größe", "y"]).encode("latin-1"), "read as latin-1"),
    "gzip": (gzip.compress(text().encode()), ""),
}


@pytest.mark.parametrize(("content", "note"), WRITTEN.values(), ids=WRITTEN)
def test_how_a_file_is_written_is_found_out(
    tmp_path: Path, content: str | bytes, note: str
) -> None:
    """Would catch a way of writing that is refused, or read as other numbers without a word."""
    packed = isinstance(content, bytes) and content[:2] == b"\x1f\x8b"
    path = write(tmp_path, content, "table.csv.gz" if packed else "table.csv")
    read = read_to_split(path, "y")
    assert read.encode(slice(None))[0].X.tolist() == [
        [float(cell) for cell in row[:2]] for row in ROWS
    ]
    assert read.Y[:, 0].tolist() == [float(row[2]) for row in ROWS]
    assert note in "\n".join(read.notes) and bool(note) == bool(read.notes)


def test_what_is_asked_for_goes_before_what_is_found(tmp_path: Path) -> None:
    """Would catch an option that is not obeyed."""
    rows = [[str(i), f"{i},5", "-" if i == 3 else "1"] for i in range(12)]
    path = write(tmp_path, text(rows, sep="^").encode("utf-16-le"))
    form = Format(separator="^", decimal=",", encoding="utf-16-le", missing=("-",))
    frame = read_file(path, form).frame
    assert frame["b"].tolist()[:2] == ["0.5", "1.5"] and frame["y"].isna().sum() == 1
    rows = [["1.234,5", "1.234", "1.5"], ["1.234", "Bonn, 2.OG", "1.234"]]
    path = write(tmp_path, text(rows, sep=";"))
    frame = read_file(path, Format(separator=";", decimal=",")).frame
    assert frame.to_numpy().tolist()[0] == ["1234.5", "1.234", "1.5"]
    assert frame.to_numpy().tolist()[1] == ["1234", "Bonn, 2.OG", "1.234"]


def test_other_files(tmp_path: Path) -> None:
    """Would catch a named index, a column of the user's, that is dropped without a word."""
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": range(12), "b": range(12), "y": range(12)})
    frame.to_feather(tmp_path / "t.feather")
    for name in ("t.parquet", "t.pq"):
        frame.set_index("a").to_parquet(tmp_path / name)
    for path in tmp_path.iterdir():
        assert read_table(path, "y").feature_names == ("a", "b")
    with pytest.raises(TableError, match=r"t.xlsx: a spreadsheet; save the sheet as a CSV file"):
        read_file(write(tmp_path, "", "t.xlsx"))
    with pytest.raises(TableError, match=r"t.parquet: cannot be read: "):
        read_file(write(tmp_path, "a,b", "t.parquet"))
    frame.assign(a=[[1.0]] * 12).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t.parquet: column 'a' holds ndarray, and no numbers"):
        read_file(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9.0", "9"], ("9", "10")),
        (["007", "7"], ("007", "7")),
        (["9007199254740993", "9007199254740992.0"], ("9007199254740992", "9007199254740993")),
        (["inf", "1"], ("1", "inf")),
        (["-2", "-10.0"], ("-10", "-2")),
    ],
)
def test_labels(tmp_path: Path, labels: list[object], classes: tuple[str, ...]) -> None:
    """Would catch labels that are merged though they differ, or not sorted as they are read."""
    table = read_table(write(tmp_path, labelled(labels * 6)), "label", "classification")
    assert table.classes == classes
    expected = [str(label).removesuffix(".0") for label in labels * 6]
    assert [table.classes[int(index)] for index in table.Y[:, 0]] == expected


def test_rows_without_a_target_are_left_out(tmp_path: Path) -> None:
    """Would catch a number that is made up for them, and a cell that is named by a wrong row."""
    read = read_to_split(write(tmp_path, text(with_cell("", column=2))), "y")
    assert len(read.Y) == len(read.encode(slice(None))[0].X) == 11
    assert "rows without a target are left out: 1" in read.notes[0]
    rows = with_cell("", column=2)
    rows[7][1] = "tall"
    with pytest.raises(TableError, match="'tall' in data row 8"):
        read_table(write(tmp_path, text(rows)), "y")


REFUSED = {
    "missing_target": (text(), "Y", r"no target column 'Y'; the columns are 'a', 'b', 'y'"),
    "close_target": (text(header=["price", "b", "y"]), "prise", "did you mean 'price'"),
    "separator": (text(sep="^"), "y", "--separator, --decimal and --encoding say how"),
    "no_header": (text(header=["1", "2", "3"]), "y", "the first line holds numbers; a header"),
    "empty": ("", "y", "the file is empty"),
    "header_only": ("a,y\n", "y", "0 data rows; at least 10"),
    "text": (
        text(with_cell("tall")),
        "y",
        "column 'b' is not numeric: 'tall' in data row 3; if that marks .*: --missing tall$",
    ),
    "missing_cell": (text(with_cell("NA")), "y", "'b' has no value in data row 3; .*--impute"),
    "long_row": (text().replace("2,1.0,2.5", "1,2,3,4"), "y", "cannot be read: .*saw 4"),
    "empty_column": (text([[a, "", y] for a, _, y in ROWS]), "y", "column 'b' is empty"),
    "infinite": (text(with_cell("-inf")), "y", "'b' holds -inf in data row 3, too large to be"),
    "overflow": (text(with_cell("1e999", column=2)), "y", "'y' holds 1e999 in data row 3, too"),
    "large": (
        text(with_cell(str(2**53 + 1))),
        "y",
        r"column 'b' holds 9007199254740993 in data row 3: whole numbers beyond 2\*\*53",
    ),
    "constant_target": (text([[a, b, "2.5"] for a, b, _ in ROWS]), "y", r"'y' is constant \(2.5\)"),
    "duplicate": (text(header=["a", "a", "y"]), "y", "two columns are named 'a'"),
    "text_target": (
        labelled(LABELS),
        "label",
        "'label' is not numeric: 'blue' in data row 1, .* task classification",
    ),
    "binary": (b"\x89PNG\r\n\x1a\n\xff\xfe" * 9, "y", "not a text file in UTF-8"),
    "zero byte": (text(with_cell("1\0002")), "y", "not a text file in UTF-8: line 4 holds the byt"),
}


@pytest.mark.parametrize(("content", "target", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(tmp_path: Path, content: str | bytes, target: str, message: str) -> None:
    """Would catch a message that does not say where a mistake is."""
    path = write(tmp_path, content)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, target)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Would catch a user who is told of one mistake in each run."""
    rows = [[f"name {i}", "-" if i == 4 else str(i), ""] for i in range(40)]
    rows = [[*row, "x" if i == 9 else str(i)] for i, row in enumerate(rows)]
    with pytest.raises(TableError) as caught:
        read_table(write(tmp_path, text(rows, ["n", "b", "e", "y"])), "y")
    first, *problems = str(caught.value).splitlines()
    assert first.endswith("table.csv has 4 problems:") and len(problems) == 4
    for problem, piece in zip(
        problems, ("'x' in data row 10", "40 different texts", "--missing -", "empty"), strict=True
    ):
        assert piece in problem


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (list(range(12)), "holds 12 classes in 12 rows, .*; numbers are for the task regression"),
        (["red"] * 12, "holds 1 classes in 12 rows, 'red' in 12: two classes are needed"),
        (["red", *["blue"] * 11], "holds 2 classes in 12 rows, 'red' in 1: two classes are needed"),
    ],
)
def test_refuses_labels(tmp_path: Path, labels: list[object], message: str) -> None:
    """Would catch labels of which nothing can be learned."""
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, labelled(labels)), "label", "classification")


def _archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.zip", b"junk"),
        ("t.csv.zip", _archive("a.csv", "b.csv")),
        ("t.csv.gz", gzip.compress(text().encode(), mtime=0)[:-20]),
    ],
)
def test_archives_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    """Would catch an error of one of the libraries that unpack."""
    with pytest.raises(TableError, match=rf"{name}: cannot be read: ."):
        read_table(write(tmp_path, content, name), "y")


def test_refuses_paths(tmp_path: Path) -> None:
    """Would catch an error of the system without the file's name."""
    with pytest.raises(TableError, match=r"none\.csv: no such file"):
        read_table(tmp_path / "none.csv", "y")
    with pytest.raises(TableError, match="a directory, not a file"):
        read_table(tmp_path, "y")


def test_names_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a bare ModuleNotFoundError."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas .*gpflow-dwp\[cli\]"):
        read_table(write(tmp_path, text()), "y")
