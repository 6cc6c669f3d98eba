"""Categories, missing cells, Parquet files and JSON on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from command_line import TINY, read_csv, run

OPTIONS = [*TINY, "--depth", "1", "--target", "price", "--test-fraction", "0.25", "--out", "run"]


@pytest.fixture(autouse=True)
def _houses(untrained: None) -> None:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    town = rng.choice(["north", "south", "west"], 40)
    size = rng.normal(100.0, 20.0, 40)
    price = size + 30.0 * (town == "south")
    data = pandas.DataFrame({"town": town, "size": size, "price": price})
    data.loc[3, "size"] = np.nan
    data.to_parquet("houses.parquet")
    new = pandas.DataFrame({"size": [90.0, None], "town": ["east", "south"], "note": [1, 2]})
    new.to_parquet("new.parquet")
    new.to_csv("new.csv", index=False)


def test_a_table_with_categories_and_missing_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--impute", "median", *OPTIONS]
    assert run("fit", "houses.parquet", *options, "--json") == 0
    output, error = capsys.readouterr()
    result = json.loads(output)
    assert result["directory"] == "run" and result["training_rows"] == 30
    assert "column 'size': 1 missing cells filled with " in error

    description = json.loads(Path("run/run.json").read_text())
    assert description["feature_names"] == ["town", "size"]
    assert description["categories"] == {"town": ["north", "south", "west"]}
    assert len(description["inputs"]["mean"]) == 4
    assert description["fill"]["size"] == pytest.approx(100.0, abs=20.0)

    assert run("predict", "run", "new.csv", "-o", "out.csv") == 0
    output, error = capsys.readouterr()
    assert output == "2 predictions are in out.csv\n"
    unseen, filled = error.splitlines()
    assert unseen.startswith("gpflow-dwp predict: column 'town' holds categories that training did")
    assert unseen.endswith("taken as none of the known ones: 'east' (1 rows)")
    assert filled.endswith(f"'size': 1 missing cells filled with {description['fill']['size']}")
    for table in ("new.csv", "new.parquet"):
        assert run("predict", "run", table, "-o", "out.parquet", "--overwrite", "--json") == 0
        result = json.loads(capsys.readouterr().out)
        assert result["unseen"] == {"town": {"east": 1}} and result["filled"] == {"size": 1}
        written = pandas.read_parquet("out.parquet")
        assert list(written)[:4] == ["size", "town", "note", "price_mean"]
        assert written["size"].dtype == np.float64 and len(written) == 2
        expected = [float(mean) for mean in read_csv(Path("out.csv"))["price_mean"]]
        np.testing.assert_allclose(written["price_mean"], expected, rtol=1e-12)

    # The columns of an export are those of the model.
    def export(model: Any, out: Path, *, assets: dict[str, str], **_: Any) -> None:
        exported.append((model.num_inputs, json.loads(assets["columns.json"])))

    exported: list[tuple[int, dict[str, Any]]] = []
    monkeypatch.setattr("gpflow_dwp.serving.export_model", export)
    assert run("export", "run", "-o", "model") == 0
    ((num_inputs, named),) = exported
    assert named["X"] == ["town=north", "town=south", "town=west", "size"]
    assert num_inputs == 4 and named["encoder"]["categories"] == description["categories"]

    # Rerun from what the run wrote.
    options = ["--config", "run/config.yaml", "--out", "again", "--quiet"]
    assert run("fit", *options) == 0
    again = json.loads(Path("again/run.json").read_text())
    changed = {"options": 0, "sha256": 0}
    assert {**again, **changed} == {**description, **changed}


def test_columns_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a column that is left out in training and asked for in prediction."""
    assert run("fit", "houses.parquet", *OPTIONS, "--drop", "town", "--impute", "mean") == 0
    assert json.loads(Path("run/run.json").read_text())["feature_names"] == ["size"]
    pandas.DataFrame({"size": [90.0]}).to_csv("sizes.csv", index=False)
    assert run("predict", "run", "sizes.csv", "-o", "out.csv") == 0

    many = pandas.DataFrame({"id": [f"n{row % 40}" for row in range(160)], "price": range(160)})
    many.to_csv("many.csv", index=False)
    capsys.readouterr()
    options = [*OPTIONS, "--overwrite"]
    assert run("fit", "many.csv", *options, "--categorical", "id") == 0
    assert "column 'id' holds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--categorical", "town"], "column 'size' has no value in data row 4; missing inputs are"),
        (["--columns", "size", "--drop", "town"], "--drop cannot go with --columns"),
        (["--impute", "zero"], 'Invalid value "zero" for --impute. Choose from: "mean"'),
        (["--categorical", "town", "twon"], "no categorical column 'twon'.*did you mean 'town'"),
    ],
)
def test_refuses(refused: Callable[..., str], options: list[str], message: str) -> None:
    printed = refused("fit", "houses.parquet", *options, *OPTIONS)
    assert re.search(message, printed), printed


def test_a_named_index_is_kept() -> None:
    assert run("fit", "houses.parquet", *OPTIONS, "--categorical", "town", "--impute", "mean") == 0
    new = pandas.read_parquet("new.parquet").set_axis(["x", "y"])
    for name in (None, "house"):
        new.rename_axis(name).to_parquet("NEW.PARQUET")
        for out in ("out.csv", "OUT.PARQUET"):
            assert run("predict", "run", "NEW.PARQUET", "-o", out, "--overwrite") == 0
        written = pandas.read_parquet("OUT.PARQUET")
        assert written.index.name == name and "house" not in written
        assert read_csv(Path("out.csv")).get("house") == (["x", "y"] if name else None)
        assert list(written.index) == (["x", "y"] if name else [0, 1])


def test_an_index_of_the_name_of_a_prediction_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("fit", "houses.parquet", *OPTIONS, "--categorical", "town", "--impute", "mean") == 0
    pandas.read_parquet("new.parquet").rename_axis("price_sd").to_parquet("new.parquet")
    assert run("predict", "run", "new.parquet", "-o", "out.csv") == 2
    assert "new.parquet has a column 'price_sd' already" in capsys.readouterr().err


def test_columns_may_have_any_name() -> None:
    data = pandas.read_parquet("houses.parquet").rename(columns={"size": "self"})
    data[["self", "price"]].dropna().to_csv("houses.csv", index=False)
    assert run("fit", "houses.csv", *OPTIONS) == 0
    assert run("predict", "run", "houses.csv", "-o", "out.parquet") == 0
    assert pandas.read_parquet("out.parquet")["self"].dtype == np.float64
