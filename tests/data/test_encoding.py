"""Categories, missing cells and Parquet files: against scikit-learn's encoder and imputer."""

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
from gpflow_dwp.data.cells import read_cells
from gpflow_dwp.data.reading import read_split_table
from gpflow_dwp.data.table import split_rows
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
    data = pandas.DataFrame({"floor": [1, 2, 2, 10] * 5, "price": np.arange(20.0)})
    encoder = ColumnEncoder.fit(
        read_cells(write(data)), ["floor"], categorical=["floor"], impute="median"
    )
    assert (encoder.categories["floor"], encoder.fill) == (("1", "10", "2"), {})

    data["floor"] = data["floor"].astype(float)
    data.loc[[0, 3], "floor"] = [np.nan, 7.0]
    cells = read_cells(write(data))

    assert encoder.transform(cells)[:4].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert encoder.unseen(cells) == {"floor": {"(missing)": 1, "7.0": 1}}
    assert ColumnEncoder.fit(
        cells, ["floor"], categorical=["floor"], impute="median"
    ).feature_names == ("floor=(missing)", "floor=1", "floor=10", "floor=2", "floor=7")


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
def test_encodes_as_scikit_learn_does(write: Write, strategy: Any) -> None:
    data = frame()
    train, test, encoder, cells = read_split_table(
        write(data),
        "price",
        test_fraction=0.3,
        seed=1,
        categorical=["colour", "town"],
        impute=strategy,
    )

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
    assert train.feature_names == encoder.feature_names
    assert train.feature_names[1:5] == tuple(f"colour={name}" for name in colours)
    assert cells is not None
    assert encoder.count_filled(cells) == {"size": 2, "floor": 3}


def test_numbers_are_those_of_a_plain_table(write: Write) -> None:
    data = frame()[["price", "floor"]].fillna(1.0)
    path = write(data)

    train, test, encoder, _ = read_split_table(path, "price", test_fraction=0.2, seed=0)

    table = read_table(path, "price")
    rows, others = split_rows(table.Y, "regression", 0.2, 0)
    np.testing.assert_array_equal(train.X, table.X[rows])
    np.testing.assert_array_equal(test.X, table.X[others])
    np.testing.assert_array_equal(table.Y[:, 0], data["price"])  # to the last bit
    assert encoder == ColumnEncoder(("floor",))


def test_an_encoder_is_read_back_from_json() -> None:
    encoder = ColumnEncoder(("a", "b"), {"b": ("x", "y")}, {"a": 0.1, "b": "x"})

    assert ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder
    with pytest.raises(ValueError, match="a saved encoder needs categories, fill"):
        ColumnEncoder.from_dict({"columns": ["a"]})
    with pytest.raises(ValueError, match="columns must hold 'c', got a, b"):
        ColumnEncoder(("a", "b"), {"c": ("x",)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"categorical": ["colour", "town"]},
            "'size' has no value in data row 3.*in 1 more; missing",
        ),
        ({}, r"'colour' is not numeric: .*; columns of cat.* \(--categorical colour town\)"),
        (
            {"impute": "mean", "categorical": ["town"]},
            r"'colour' is not .* \(--categorical colour\)",
        ),
        ({"impute": "zero"}, "impute must be one of mean, median, most_frequent, got 'zero'"),
        ({"categorical": ["color"]}, "no categorical column 'color'; .* did you mean 'colour'"),
        ({"categorical": ["price"]}, "'price' is the target, not an input"),
        (
            {"categorical": ["town"], "drop": ["town"]},
            r"'town' is named as categorical \(--categorical\), but is no input \(--columns, --dr",
        ),
    ],
)
def test_refuses(write: Write, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        # All of the rows with missing cells are training rows.
        read_split_table(write(frame()), "price", test_fraction=0.1, seed=4, **arguments)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (250, "'id' holds 250 categories, such as 'n0', .* at most 100 can be used"),
        (15, "'id' holds 15 categories, such as 'n0', in 15 rows; more than 10 need"),
    ],
)
def test_names_of_rows_are_no_categories(tmp_path: Path, rows: int, message: str) -> None:
    data = pandas.DataFrame({"id": [f"n{row}" for row in range(rows)]})
    data.to_csv(tmp_path / "table.csv", index=False)
    cells = read_cells(tmp_path / "table.csv")

    with pytest.raises(TableError, match=message):
        ColumnEncoder.fit(cells, ["id"], categorical=["id"])
    assert len(ColumnEncoder.fit(cells.take(np.arange(10)), ["id"], categorical=["id"]).categories)


def test_an_index_is_no_column(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    data = frame().set_index("size")
    data.to_parquet(path)
    with pytest.raises(
        TableError, match="'size'.* has an index of this name: write it as a column"
    ):
        read_cells(path).check_has(["size"], "feature")
    data.assign(size=1.0).to_parquet(path)
    with pytest.raises(TableError, match="the index and a column are both named 'size'"):
        read_cells(path)


def test_inputs_are_named_or_left_out(write: Write) -> None:
    """Catches columns in another order than the file's, and names that are not checked."""
    path = write(frame().dropna())

    def names(**choice: Any) -> tuple[str, ...]:
        split = read_split_table(path, "price", test_fraction=0.2, seed=0, **choice)
        return split.train.feature_names

    assert names(columns=["floor", "size"]) == ("size", "floor")
    assert names(drop=["colour", "town"]) == ("size", "floor")
    with pytest.raises(TableError, match="no input column 'sise'; .* did you mean 'size'"):
        names(columns=["sise"])
    with pytest.raises(TableError, match="'price' is the target, not an input"):
        names(drop=["price"])
    with pytest.raises(TableError, match="no column is left as an input"):
        names(drop=["size", "colour", "floor", "town"])
    with pytest.raises(ValueError, match="drop must be empty where columns are named"):
        names(drop=["size"], columns=["floor"])


def test_refuses_an_empty_column(write: Write) -> None:
    data = frame().assign(size=np.nan)
    with pytest.raises(TableError, match="column 'size' is empty"):
        read_split_table(
            write(data), "price", test_fraction=0.2, seed=0, categorical=["colour"], impute="mean"
        )


def test_rows_without_a_value_stay(write: Write) -> None:
    data = frame().astype({"colour": object, "town": object})
    data.loc[[0, 9, 19]] = None
    cells = read_cells(write(data))
    assert len(cells) == len(data) and cells.rows[-1] == len(data)
    encoder = ColumnEncoder(("size", "town"), {"town": ("(missing)",)}, {"size": 7.0})
    np.testing.assert_array_equal(encoder.transform(cells)[[0, 9, 19]], [[7.0, 1.0]] * 3)


def test_refuses_what_is_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    path.write_text("a,b")
    with pytest.raises(TableError, match=r"table.parquet: cannot be read: "):
        read_cells(path)
