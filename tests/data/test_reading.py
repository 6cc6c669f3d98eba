"""CSV files: what is read, and what a user is told about a file that cannot be."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.data import ColumnEncoder, read_table
from gpflow_dwp.data.cells import as_known, read_cells
from gpflow_dwp.exceptions import TableError

ROWS = [(i, 0.1 * i * i, "blue" if i % 3 else "red") for i in range(12)]


def write(folder: Path, lines: list[str] | bytes) -> Path:
    path = folder / "table.csv"
    data = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
    path.write_bytes(data)
    return path


def numeric(change: dict[int, str] | None = None) -> list[str]:
    """A header and twelve rows of ``a, b, y``; ``change`` replaces lines of the file, from 1."""
    lines = ["a,b,y", *(f"{i},{b!r},{i % 5}.5" for i, b, _ in ROWS)]
    for line, text in (change or {}).items():
        lines[line - 1] = text
    return lines


def labelled(labels: list[object]) -> list[str]:
    return ["a,label", *(f"{i},{label}" for i, label in enumerate(labels))]


def test_reads_regression(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, numeric()), "b")
    assert (table.feature_names, table.target_name) == (("a", "y"), "b")
    assert (table.task, table.classes) == ("regression", None)
    np.testing.assert_array_equal(table.X, [[i, i % 5 + 0.5] for i, _, _ in ROWS])
    assert table.Y[:, 0].tolist() == [b for _, b, _ in ROWS]  # to the last bit


def test_reads_text_labels_in_sorted_order(tmp_path: Path) -> None:
    path = write(tmp_path, labelled([label for *_, label in ROWS]))
    table = read_table(str(path), "label", "classification")
    assert table.classes == ("blue", "red")
    assert table.Y[:, 0].tolist() == [float(label == "red") for *_, label in ROWS]


def test_reads_integer_labels_in_numeric_order(tmp_path: Path) -> None:
    path = write(tmp_path, labelled([10, "9.0", 9, "1e1", 10, 9] * 2))
    table = read_table(path, "label", task="classification")
    assert table.classes == ("9", "10")
    assert table.Y[:, 0].tolist() == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0] * 2


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["007", "7"], ("007", "7")),
        (["9007199254740993", "9007199254740992.0"], ("9007199254740992", "9007199254740993")),
        (["inf", "1"], ("1", "inf")),
        (["-2", "-10.0"], ("-10", "-2")),
        (["1_0", "10"], ("10", "1_0")),
        (["1", "1.0", "a"], ("1", "1.0", "a")),
    ],
)
def test_labels_are_merged_where_nothing_is_lost(
    tmp_path: Path, labels: list[object], classes: tuple[str, ...]
) -> None:
    table = read_table(write(tmp_path, labelled(labels * 6)), "label", "classification")
    assert table.classes == classes
    expected = [as_known(str(label), classes) for label in labels * 6]
    assert [table.classes[int(index)] for index in table.Y[:, 0]] == expected


def test_spaces_blank_lines_quotes_and_byte_order_mark(tmp_path: Path) -> None:
    lines = ["\ufeffa, b ,y", *numeric()[1:4], "", " 3 , 1 ,2", '"4","5","6"', *numeric()[5:], ""]
    table = read_table(write(tmp_path, lines), "y")
    assert table.feature_names == ("a", "b")
    assert table.X[3].tolist() == [3.0, 1.0]
    assert table.X[4].tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n,\n\n \n1,2\n , \n\n", ["", "1", ""]),
        # A row of two lines, a blank line, a row.
        ('a,b\r\n"\r\n",\r\n\r\n,\r\n1,2', ["", "", "1"]),
        ("a\n\n1\n\n2\n\n \n", ["", "1", "", "2"]),
    ],
)
def test_only_blank_lines_of_several_columns_are_no_rows(
    tmp_path: Path, text: str, rows: list[str]
) -> None:
    cells = read_cells(write(tmp_path, text.encode()))
    assert cells.column("a").tolist() == rows
    assert cells.rows == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("above", "lines"),
    [("\n", [3, 5]), ("\ufeff\r\n \t\r\n", [4, 6]), ("\r  ", [3, 5])],
)
def test_blank_lines_above_the_header_only_count_as_lines(
    tmp_path: Path, above: str, lines: list[int]
) -> None:
    """Would catch a table of several columns that is taken for one of a single blank column."""
    cells = read_cells(write(tmp_path, f"{above}a,b\n1,2\n\n3,4\n".encode()))
    assert cells.text.to_numpy().tolist() == [["1", "2"], ["3", "4"]]
    assert cells.lines == lines


def test_reads_features_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, ["note,b,,a", "x,2,7,1", "y,4,8,3"])
    features = ColumnEncoder(("a", "b")).transform(read_cells(path))
    np.testing.assert_array_equal(features, [[1.0, 2.0], [3.0, 4.0]])


REFUSED = {
    "missing_target": (numeric(), "Y", r"no target column 'Y'; the columns are 'a', 'b', 'y'"),
    "close_target": (
        ["price,size", *(f"{i},{i}" for i in range(12))],
        "prise",
        "no target column 'prise'; .* did you mean 'price'",
    ),
    "separator": (["a;b;y", *["1;2;3"] * 12], "y", "columns must be separated by commas"),
    "no_header": (["1,2,3"] * 12, "y", "the first line holds numbers; a header line is needed"),
    "empty": ([], "y", "the file is empty"),
    "blank": (["", " ", ""], "y", "the file is empty"),
    "header_only": (["a,y"], "y", "0 data rows; at least 10"),
    "few_rows": (numeric()[:8], "y", "7 data rows; at least 10 are needed"),
    "text": (
        numeric({5: "3,tall,1.5", 6: "4,wide,1.5"}),
        "y",
        r"column 'b' is not numeric: 'tall' in data row 4 \(line 5\)$",
    ),
    "text_after_blank_line": (
        numeric({3: "", 5: "3,tall,1.5"}),
        "y",
        r"column 'b' is not numeric: 'tall' in data row 3 \(line 5\)$",
    ),
    "digits_with_underscore": (
        numeric({4: "2,12_0,1"}),
        "y",
        r"column 'b' is not numeric: '12_0' in data row 3 \(line 4\)$",
    ),
    "before_several_lines": (
        numeric({4: "2,x,1", 6: '"\n4",1,1'}),
        "y",
        r"not numeric: 'x' in data row 3 \(line 4\)$",
    ),
    "at_several_lines": (
        numeric({4: '"2\n",x,1'}),
        "y",
        r"not numeric: 'x' in data row 3 \(line 4\)$",
    ),
    "after_several_lines": (
        numeric({4: '"2\n",1,1', 6: "4,x,1"}),
        "y",
        r"not numeric: 'x' in data row 5$",
    ),
    "after_a_header_of_several_lines": (
        numeric({1: 'a,b,"y\nz"', 4: "2,x,1"}),
        "a",
        r"not numeric: 'x' in data row 3$",
    ),
    "missing_cell": (numeric({4: "2,,1"}), "y", r"'b' has no value in data row 3 \(line 4\)$"),
    "missing_cells": (
        numeric({4: "2,NA,1", 6: "2,?,1", 8: "2,nan,1"}),
        "y",
        r"'b' has no value in data row 3 \(line 4\), and in 2 more$",
    ),
    "short_row": (numeric({4: "2,3"}), "y", r"'y' has no value in data row 3 \(line 4\)"),
    "long_row": (numeric({4: "1,2,3,4"}), "y", "cannot be read: .*line 4, saw 4"),
    "empty_column": (["a,b,y", *(f"{i},,{i}" for i in range(12))], "y", "column 'b' is empty"),
    "infinite": (numeric({4: "2,-inf,1"}), "y", r"not finite: -inf in data row 3 \(line 4\)"),
    "overflow": (numeric({4: "2,1,1e999"}), "y", r"'y' is not finite: 1e999 in data row 3"),
    "constant_target": (
        ["a,y", *(f"{i},2.50" for i in range(12))],
        "y",
        r"target column 'y' is constant \(2.5\): there is nothing to predict",
    ),
    "target_only": (["y", *map(str, range(12))], "y", "'y' is the only column; inputs are"),
    "duplicate": (["a,a,y", *["1,2,3"] * 12], "y", "two columns are named 'a'"),
    "unnamed": ([",a,y", *["1,2,3"] * 12], "y", "column 1 has no name; .* row number"),
    "text_target": (
        labelled(["red", "blue"] * 6),
        "label",
        r"'label' is not numeric: 'red' in data row 1 \(line 2\); .* task classification",
    ),
    "binary": (b"\x89PNG\r\n\x1a\n\xff\xfe" * 9, "y", "not a text file in UTF-8"),
}


@pytest.mark.parametrize(("lines", "target", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(tmp_path: Path, lines: list[str] | bytes, target: str, message: str) -> None:
    path = write(tmp_path, lines)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, target)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [0, 1, 0.5, *[1] * 9],
            r"numbers that are no labels: 0.5 in data row 3 \(line 4\); .* task regression",
        ),
        (list(range(12)), r"as many classes as rows \(12\)"),
        (["red"] * 12, "has a single class, 'red'"),
        (["red", *["blue"] * 11], "one row only of class 'red'; each class needs two"),
        (["red", "", *["blue"] * 10], r"'label' has no value in data row 2 \(line 3\)"),
    ],
)
def test_refuses_labels(tmp_path: Path, labels: list[object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, labelled(labels)), "label", "classification")


def test_a_cell_does_not_end_at_a_zero_byte(tmp_path: Path) -> None:
    path = write(tmp_path, numeric({4: "1\0002,3,4"}))
    with pytest.raises(TableError, match=r"table.csv: not a text file: line 4 holds a zero byte"):
        read_table(path, "y")


def _archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return buffer.getvalue()


_PACKED = gzip.compress("\n".join(numeric()).encode(), mtime=0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.zip", b"junk"),
        ("t.csv.zip", _archive("a.csv", "b.csv")),
        ("t.csv.xz", b"junk"),
        ("t.csv.tar", b"junk" * 200),
        ("t.csv.gz", b"junk"),
        ("t.csv.gz", _PACKED[:-20]),
        ("t.csv.gz", _PACKED[:40] + b"\xff\xff\xff" + _PACKED[43:]),
    ],
)
def test_archives_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=rf"{name}: cannot be read: ."):
        read_table(tmp_path / name, "y")


def test_refuses_paths_and_tasks(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"none\.csv: no such file"):
        read_table(tmp_path / "none.csv", "y")
    with pytest.raises(TableError, match="a directory, not a CSV file"):
        read_table(tmp_path, "y")
    with pytest.raises(TableError, match="task must be"):
        read_table(tmp_path, "y", "ranking")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,c", "1,2"], "no feature column 'b'; the columns are 'a', 'c'"),
        (["a,bb", "1,2"], "no feature column 'b'; .* did you mean 'bb'"),
        (["A", "1"], "no feature column 'a', 'b'; the columns are 'A'"),
        (["a,b,b", "1,2,3"], "two columns are named 'b'"),
        (["a,b", "1,2", "3,x"], r"'b' is not numeric: 'x' in data row 2 \(line 3\)"),
    ],
)
def test_refuses_features(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(TableError, match=message):
        ColumnEncoder(("a", "b")).transform(read_cells(write(tmp_path, lines)))


def test_names_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas .*gpflow-dwp\[cli\]"):
        read_table(write(tmp_path, numeric()), "y")
