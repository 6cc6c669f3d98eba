"""Categories, times and missing cells: against scikit-learn's encoder and imputer."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpflow_dwp.data.encoding import ColumnEncoder, problem_of_categories
from gpflow_dwp.data.reading import read_file
from gpflow_dwp.data.table import read_to_split, split_rows
from gpflow_dwp.exceptions import TableError


def frame(rows: int = 20) -> pandas.DataFrame:
    """Numbers and categories, some of them missing."""
    rng = np.random.default_rng(0)
    data = pandas.DataFrame(
        {
            "size": rng.normal(size=rows).round(3),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "floor": rng.integers(0, 4, rows).astype(float),
            "town": rng.choice(["north", "south"], rows),
            "price": 0.1 * rng.normal(size=rows) + 1.0,
        }
    )
    data.loc[[2, 5], "size"] = np.nan
    data.loc[[3, 7, 11], "floor"] = np.nan
    data.loc[[4], "colour"] = None
    return data


def write(data: pandas.DataFrame, folder: Path, kind: str = "csv") -> Path:
    path = folder / f"table.{kind}"
    data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
    return path


kinds = pytest.mark.parametrize("kind", ["csv", "parquet"])


@kinds
def test_whole_numbers_are_categories_with_and_without_decimals(tmp_path: Path, kind: str) -> None:
    """Would catch 1 and 1.0 as two categories: a column with a missing cell has floats."""
    data = pandas.DataFrame({"floor": [1, 2, 2, 10] * 5, "price": np.arange(20.0)})
    read = read_file(write(data, tmp_path, kind)).frame
    encoder = ColumnEncoder.fit(read, {"floor": "category"})
    assert (encoder.categories["floor"], encoder.fill) == (("1", "10", "2"), {})
    data["floor"] = data["floor"].astype(float)
    data.loc[[0, 3], "floor"] = [np.nan, 7.0]
    read = read_file(write(data, tmp_path, kind)).frame
    assert encoder.transform(read)[:4].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert encoder.notes(read)[0].endswith("'(missing)' (1 rows), '7' (1 rows)")


@kinds
def test_encodes_as_scikit_learn_does(tmp_path: Path, kind: str) -> None:
    """Would catch fillings or categories that test rows have a part in."""
    data = frame()
    read = read_to_split(write(data, tmp_path, kind), "price", impute=True)
    train, test, encoder = read.split(0.3, 1)
    rows, others = split_rows(data[["price"]].to_numpy(), "regression", 0.3, 1)
    numbers, labels = ["size", "floor"], ["colour", "town"]

    def plain(part: np.ndarray) -> pandas.DataFrame:
        cells = {name: data[name].astype(object) for name in labels}
        missing = {name: column.where(column.notna(), None) for name, column in cells.items()}
        return data.assign(**missing).iloc[part]

    constant = SimpleImputer(missing_values=None, strategy="constant", fill_value="(missing)")
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    expected = make_column_transformer(
        (SimpleImputer(strategy="median"), numbers), (make_pipeline(constant, one_hot), labels)
    ).fit(plain(rows))
    colours = [f"colour={name}" for name in ("(missing)", "blue", "green", "red")]
    order = ["size", "floor", *colours, "town=north", "town=south"]
    columns = [order.index(name) for name in train.feature_names]
    for table, part in ((train, rows), (test, others)):
        encoded = expected.transform(plain(part))[:, columns].astype(float)
        np.testing.assert_allclose(table.X, encoded, rtol=1e-14)
        np.testing.assert_array_equal(table.Y[:, 0], data["price"].iloc[part])
    assert train.feature_names == ("size", *colours, "floor", "town=north", "town=south")
    size, floor = encoder.notes(read.file.frame)[-2:]
    assert "'size': 2 missing cells" in size and "'floor': 3 missing cells" in floor
    assert "colour, town: text or Boolean, taken as categories" in read.notes[-1]


@kinds
def test_times_are_seconds_from_the_first_of_training(tmp_path: Path, kind: str) -> None:
    """Would catch times that are refused, in nanoseconds, or from another first in new rows."""
    when = pandas.date_range("2020-02-28 12:00", periods=12, freq="D")
    data = pandas.DataFrame({"when": when, "old": np.arange(12) > 5, "price": np.arange(12.0)})
    read = read_to_split(write(data, tmp_path, kind), "price")
    table, _ = read.encode(slice(None))
    encoder = read.split(0.2, 0)[2]
    assert table.feature_names == ("when", "old=False", "old=True")
    assert table.X[:, 0].tolist() == [86400.0 * day for day in range(12)]
    assert "when: times, taken as seconds from the first" in read.notes[-1]
    later = pandas.DataFrame({"when": ["2020-03-01 12:00:30+00:00"], "old": ["True"]})
    again = ColumnEncoder.from_dict(json.loads(json.dumps(dataclasses.asdict(encoder))))
    first = pandas.Timestamp(encoder.origins["when"])
    seconds = (pandas.Timestamp("2020-03-01 12:00:30") - first).total_seconds()
    assert again == encoder and again.transform(later).tolist() == [[seconds, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"'size' has no value in data row 3, and in 1 more; --impute fills missing inputs"),
        ({"categorical": ["color"]}, "no categorical input column 'color'; .* mean 'colour'"),
        ({"categorical": ["price"]}, "'price' is the target, not an input"),
        ({"categorical": ["town"], "drop": ["town"]}, "no categorical input column 'town'"),
        ({"drop": ["size", "colour", "floor", "town"]}, "'price' is the only column"),
    ],
)
def test_refuses(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    """Would catch a mistake that is not named."""
    with pytest.raises(TableError, match=message):
        read_to_split(write(frame(), tmp_path), "price", **arguments)


def test_columns_are_dropped_and_their_numbers_kept(tmp_path: Path) -> None:
    """Would catch columns in another order than the file's, and numbers of other bits."""
    data = frame().fillna({"size": 0.0, "floor": 0.0})
    read = read_to_split(write(data, tmp_path), "price", drop=["town", "colour"])
    table, encoder = read.encode(slice(None))
    assert encoder == ColumnEncoder(("size", "floor"))
    np.testing.assert_array_equal(table.X, data[["size", "floor"]])


@pytest.mark.parametrize("rows", [250, 15, 10])
def test_names_of_rows_are_no_categories(rows: int) -> None:
    """Would catch a table that gets an input for each of its rows."""
    column = pandas.Series([f"n{row}" for row in range(rows)], name="id")
    message = f"column 'id' holds {rows} different texts, such as 'n0', in {rows} rows; "
    told = problem_of_categories(column)
    assert told.startswith(message) and "--drop id" in told if rows > 10 else told == ""


def test_new_rows_that_cannot_be_used_are_named() -> None:
    """Would catch a column that is missing in new rows, or not of the kind of training."""
    encoder = ColumnEncoder(("a", "b"))
    for data, message in (
        ({"a": [1.0], "bb": [1.0]}, "no feature column 'b'; .* did you mean 'bb'"),
        ({"a": [1.0, 2.0], "b": ["1", "x"]}, "column 'b' is not numeric: 'x' in data row 2"),
        ({"a": [1.0, None], "b": [1.0, 2.0]}, "column 'a' has no value in data row 2"),
    ):
        with pytest.raises(TableError, match=message):
            encoder.transform(pandas.DataFrame(data))
