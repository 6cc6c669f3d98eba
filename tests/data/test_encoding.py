"""Categories, times and missing cells: against scikit-learn's encoder and imputer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpflow_dwp.data import ColumnEncoder, read_table
from gpflow_dwp.data.reading import read_file
from gpflow_dwp.data.table import split_rows
from gpflow_dwp.data.tables import read_to_split
from gpflow_dwp.exceptions import TableError

Write = Callable[[pandas.DataFrame], Path]


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


@pytest.fixture(params=["csv", "parquet"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Writes a table in one of the formats."""

    def write_table(data: pandas.DataFrame) -> Path:
        path = tmp_path / f"table.{request.param}"
        if request.param == "csv":
            data.to_csv(path, index=False)
        else:
            pytest.importorskip("pyarrow")
            data.to_parquet(path)
        return path

    return write_table


def test_whole_numbers_are_categories_with_and_without_decimals(write: Write) -> None:
    """Would catch 1 and 1.0 as two categories: a column with a missing cell has floats."""
    data = pandas.DataFrame({"floor": [1, 2, 2, 10] * 5, "price": np.arange(20.0)})
    encoder = ColumnEncoder.fit(read_file(write(data)).frame, ["floor"], categorical=["floor"])
    assert (encoder.categories["floor"], encoder.fill) == (("1", "10", "2"), {})

    data["floor"] = data["floor"].astype(float)
    data.loc[[0, 3], "floor"] = [np.nan, 7.0]
    read = read_file(write(data)).frame

    assert encoder.transform(read)[:4].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert encoder.unseen(read) == {"floor": {"(missing)": 1, "7": 1}}


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
def test_encodes_as_scikit_learn_does(write: Write, strategy: Any) -> None:
    """Would catch fillings or categories that test rows have a part in."""
    data = frame()
    read = read_to_split(write(data), "price", impute=strategy)
    train, test, encoder = read.split(0.3, 1)

    rows, others = split_rows(data[["price"]].to_numpy(), "regression", 0.3, 1)
    numbers, labels = ["size", "floor"], ["colour", "town"]

    def plain(part: np.ndarray) -> pandas.DataFrame:
        cells = {name: data[name].astype(object) for name in labels}
        missing = {name: column.where(column.notna(), None) for name, column in cells.items()}
        return data.assign(**missing).iloc[part]

    expected = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy=strategy), numbers),
            (
                "labels",
                make_pipeline(
                    SimpleImputer(missing_values=None, strategy="constant", fill_value="(missing)"),
                    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                ),
                labels,
            ),
        ]
    ).fit(plain(rows))
    colours = ("(missing)", "blue", "green", "red")
    order = ["size", "floor", *(f"colour={name}" for name in colours)]
    order += ["town=north", "town=south"]
    columns = [order.index(name) for name in train.feature_names]
    for table, part in ((train, rows), (test, others)):
        encoded = expected.transform(plain(part))[:, columns].astype(float)
        np.testing.assert_allclose(table.X, encoded, rtol=1e-14)
        np.testing.assert_array_equal(table.Y[:, 0], data["price"].iloc[part])
    assert train.feature_names[1:5] == tuple(f"colour={name}" for name in colours)
    assert encoder.count_filled(read.file.frame) == {"size": 2, "floor": 3}
    assert "colour, town: text or Boolean, taken as categories" in read.notes[-1]


def test_times_are_seconds_from_the_first_of_training(write: Write) -> None:
    """Would catch times that are refused, in nanoseconds, or from another first in new rows."""
    when = pandas.date_range("2020-02-28 12:00", periods=12, freq="D")
    data = pandas.DataFrame({"when": when, "old": np.arange(12) > 5, "price": np.arange(12.0)})
    read = read_to_split(write(data), "price")
    table, encoder = read.whole(), read.split(0.2, 0).encoder
    assert table.feature_names == ("when", "old=False", "old=True")
    assert table.X[:, 0].tolist() == [86400.0 * day for day in range(12)]
    assert "when: times, taken as seconds from the first" in read.notes[-1]
    later = pandas.DataFrame({"when": ["2020-03-01 12:00:30+00:00"], "old": ["True"]})
    again = ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    first = pandas.Timestamp(encoder.origins["when"])
    seconds = (pandas.Timestamp("2020-03-01 12:00:30") - first).total_seconds()
    assert again == encoder and again.transform(later).tolist() == [[seconds, 0.0, 1.0]]


def test_numbers_are_those_of_a_plain_table(write: Write) -> None:
    """Would catch numbers that are not those of the file to the last bit."""
    data = frame()[["price", "floor"]].fillna(1.0)
    path = write(data)
    train, test, encoder = read_to_split(path, "price").split(0.2, 0)
    table = read_table(path, "price")
    rows, others = split_rows(table.Y, "regression", 0.2, 0)
    np.testing.assert_array_equal(train.X, table.X[rows])
    np.testing.assert_array_equal(test.X, table.X[others])
    np.testing.assert_array_equal(table.Y[:, 0], data["price"])
    assert encoder == ColumnEncoder(("floor",))


def test_an_encoder_is_read_back_from_json() -> None:
    """Would catch a saved encoder that is damaged and taken."""
    encoder = ColumnEncoder(("a", "b"), {"b": ("x", "y")}, {"a": 0.1})
    assert ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder
    with pytest.raises(ValueError, match="a saved encoder needs categories, fill"):
        ColumnEncoder.from_dict({"columns": ["a"]})
    with pytest.raises(ValueError, match="columns must hold 'c', got a, b"):
        ColumnEncoder(("a", "b"), {"c": ("x",)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"'size' has no value in data row 3, and in 1 more; missing inputs are filled by --"),
        ({"impute": "zero"}, "impute must be one of mean, median, most_frequent, got 'zero'"),
        ({"categorical": ["color"]}, "no categorical column 'color'; .* did you mean 'colour'"),
        ({"categorical": ["price"]}, "'price' is the target, not an input"),
        ({"columns": ["floor", "x"]}, "no input column 'x'"),
        (
            {"categorical": ["town"], "drop": ["town"]},
            r"'town' is named as categorical \(--categorical\), but is no input \(--columns, --dr",
        ),
        ({"drop": ["size", "colour", "floor", "town"]}, "'price' is the only column"),
    ],
)
def test_refuses(write: Write, arguments: dict[str, Any], message: str) -> None:
    """Would catch a mistake that is not named."""
    with pytest.raises(TableError, match=message):
        read_to_split(write(frame()), "price", **arguments)


@pytest.mark.parametrize("rows", [250, 15])
@pytest.mark.parametrize("named", [[], ["id"]])
def test_names_of_rows_are_no_categories(rows: int, named: list[str]) -> None:
    """Would catch a table that gets an input for each of its rows."""
    data = pandas.DataFrame({"id": [f"n{row}" for row in range(rows)]})
    message = f"column 'id' holds {rows} different texts, such as 'n0', in {rows} rows; .*--drop id"
    with pytest.raises(TableError, match=message):
        ColumnEncoder.fit(data, ["id"], categorical=named)
    assert len(ColumnEncoder.fit(data[:10], ["id"], categorical=named).categories["id"]) == 10


def test_columns_are_chosen(write: Write) -> None:
    """Would catch columns in another order than the file's."""
    data = frame().fillna({"size": 0.0, "floor": 0.0})
    assert read_to_split(write(data), "price", columns=["floor", "size"]).columns == (
        "size",
        "floor",
    )
    assert read_to_split(write(data), "price", drop=["town", "colour"]).columns == ("size", "floor")


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
