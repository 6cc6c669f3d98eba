"""``gpflow-dwp`` predict, evaluate, export and info: of runs that are trained once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import tensorflow as tf
from command_line import TASKS, TINY, TrainedRun, read_csv, run, write_csv
from faults.states import read_tree

from gpflow_dwp.data import Standardiser, Table
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.predictions import predict
from gpflow_dwp.models import model_summary
from gpflow_dwp.serving import export

Trained = Callable[[str], TrainedRun]
Printed = pytest.CaptureFixture[str]
NEW = {"a": [0.5, -1.0, 2.0], "b": [1e3, 950.0, 1.1e3]}
FEW = ("--num-samples", "2")
ADDED = {
    "regression": ["price_mean", "price_sd", "price_lower_95", "price_upper_95"],
    "three classes": [
        "label_predicted",
        "label_probability_blue",
        "label_probability_green",
        "label_probability_red",
    ],
}


def predictions(result: TrainedRun, table: dict[str, Any], *options: str) -> dict[str, list[str]]:
    """The columns that ``gpflow-dwp predict`` writes."""
    path = write_csv(Path("new.csv"), table)
    Path("out.csv").unlink(missing_ok=True)
    assert run("predict", result.directory, path, "-o", "out.csv", *options) == 0
    return read_csv(Path("out.csv"))


def numbers(table: dict[str, list[str]], *names: str) -> np.ndarray:
    return np.array([[float(value) for value in table[name]] for name in names])


def test_regression_is_that_of_the_model_in_raw_units(trained: Trained) -> None:
    """Would catch units, quantiles or draws that are not the model's."""
    result = trained("regression")
    train, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    units = RawUnits(result.model(), Standardiser.fit(train.X), Standardiser.fit(train.Y))
    wanted = predict(units, test.X)
    expected = [wanted.mean, wanted.deviation, wanted.lower, wanted.upper]
    np.testing.assert_allclose(numbers(table, *ADDED["regression"]), expected, rtol=1e-12)


def test_probabilities_are_those_of_the_model(trained: Trained) -> None:
    """Would catch classes in another order than their names'."""
    result = trained("three classes")
    _, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    probabilities = numbers(table, *ADDED["three classes"][1:]).T
    tf.random.set_seed(0)  # the softmax draws from the global generator
    expected = result.model().predict_y(result.standardised(test), seed=0)[0].numpy()
    np.testing.assert_allclose(probabilities, expected, rtol=1e-9)
    labels = sorted(test.classes or ())
    assert table["label_predicted"] == [labels[row.argmax()] for row in probabilities]
    truth = [labels[int(label)] for label in test.Y[:, 0]]
    wrong = np.mean([x != y for x, y in zip(table["label_predicted"], truth, strict=True)])
    assert result.deep_scores["error_rate"] == wrong  # as fit reports it


@pytest.mark.parametrize("task", TASKS)
def test_the_table_is_kept_to_the_letter(trained: Trained, task: str, capsys: Printed) -> None:
    """Would catch codes that only look like numbers, and a run that is changed."""
    before, plain = read_tree(trained(task).directory), predictions(trained(task), NEW, *FEW)
    assert list(plain) == ["a", "b", *ADDED[task]]
    assert capsys.readouterr().out.endswith("3 predictions are in out.csv\n")
    further = {"id": ["007", "008", "x"], "b": NEW["b"], "note": ["NA", "", "1.50"], "a": NEW["a"]}
    further |= {"price": ["1", "2", "unknown"], "Straße": ["ä", "日本", "–"]}
    table = predictions(trained(task), further, *FEW)
    assert list(table) == [*further, *ADDED[task]]
    assert all(table[name] == plain[name] for name in ADDED[task])
    assert all(table[name] == further[name] for name in ("id", "note", "price", "Straße"))
    assert read_tree(trained(task).directory) == before


def test_without_a_file_predictions_are_printed(trained: Trained, capsys: Printed) -> None:
    """Would catch anything but the table on standard output, and other decimals than it has."""
    table = {name: [str(value).replace(".", ",") for value in NEW[name]] for name in NEW}
    lines = [";".join(row) for row in [[*table], *zip(*table.values(), strict=True)]]
    Path("new.csv").write_text("\n".join(lines))
    assert run("predict", trained("regression").directory, "new.csv", *FEW) == 0
    output, error = capsys.readouterr()
    first, *rows = output.splitlines()
    assert first.split(";") == ["a", "b", *ADDED["regression"]] and "decimals are" in error
    expected = predictions(trained("regression"), NEW, *FEW)["price_mean"]
    assert [row.split(";")[2].replace(",", ".") for row in rows] == expected


@pytest.mark.parametrize(
    ("table", "out", "message"),
    [
        ({"a": [1.0]}, "out.csv", "new.csv: no feature column 'b'; the columns are 'a'"),
        ({"a": [1.0, "nan"], "b": [1, 2]}, "out.csv", "'a' has no value in data row 2"),
        ({"a": [1, 1.7e308], "b": [1, 2]}, "out.csv", "'a' holds 1.7e+308 in data row 2, too"),
        ({**NEW, "price_sd": [1, 1, 1]}, "out.csv", "new.csv has a column 'price_sd' already"),
        (NEW, "o.parquet", "--out o.parquet: predictions are written as CSV"),
        (NEW, "nowhere/out.csv", "nowhere is not a directory"),
        (NEW, "new.csv", "--out new.csv is there already: choose another, or remove it"),
        (NEW, "link/x.csv", "run, which holds a run or a model"),
        (None, "out.csv", "new.csv: no such file"),
    ],
)
def test_refuses_before_it_predicts(
    trained: Trained,
    refused: Callable[..., str],
    table: dict[str, Any] | None,
    out: str,
    message: str,
) -> None:
    """Would catch that all is computed before it turns out that it cannot be kept."""
    Path("link").symlink_to(trained("regression").directory, target_is_directory=True)
    if table is not None:
        write_csv(Path("new.csv"), table)
    assert message in refused("predict", trained("regression").directory, "new.csv", "-o", out)


def test_refuses_what_is_no_run_and_to_replace_what_is_there(
    trained: Trained, refused: Callable[..., str]
) -> None:
    """Would catch a run without its model, none at all, and a user's folder written over."""
    path = write_csv(Path("new.csv"), NEW)
    for arguments in (("predict", "absent", path, "-o", "out.csv"), ("info", "absent")):
        message = "absent is not a run directory: it has no run.json"
        assert message in refused(*arguments)
    Path("full").mkdir()
    for out in ("full", "new.csv"):
        told = refused("export", trained("three classes").directory, "-o", out)
        assert f"{out} exists; name a directory that is new" in told
    shutil.copytree(trained("regression").directory, "run")
    shutil.rmtree("run/model")
    for arguments in (("predict", "run", path, "-o", "out.csv"), ("info", "run")):
        assert "run is damaged: its model/model.zip is missing" in refused(*arguments)


def in_json(capsys: Printed, *arguments: object) -> dict[str, Any]:
    """What a command prints."""
    capsys.readouterr()
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def write_rows(table: Table) -> Path:
    """The rows of a table, with labels by name."""
    target = table.Y[:, 0]
    if table.classes is not None:
        target = np.array(table.classes)[target.astype(int)]
    cells = {table.target_name: target, "b": table.X[:, 1], "a": table.X[:, 0]}
    return write_csv(Path("rows.csv"), {name: values.tolist() for name, values in cells.items()})


@pytest.mark.parametrize(
    ("task", "error", "others"),
    [
        ("regression", "rmse", ["crps", "r2", "coverage_of_95%_intervals"]),
        ("three classes", "error_rate", ["ece", "mean_confidence"]),
    ],
)
def test_scores_of_test_rows_are_those_of_fit(
    trained: Trained, capsys: Printed, task: str, error: str, others: list[str]
) -> None:
    """Would catch scores in other units, or of another seed, than those of fit."""
    result = trained(task)
    path = write_rows(result.rows()[1])
    scores = in_json(capsys, "evaluate", result.directory, path)
    assert run("evaluate", result.directory, path) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    expected = {**result.metrics, **result.deep_scores, "rows": 10}
    assert list(scores) == ["rows", "log_likelihood", error, *others]
    for name, value in scores.items():
        assert value == pytest.approx(expected[name], rel=1e-9)
    assert first == f"{'price' if task == 'regression' else 'label'}: 10 rows"
    assert lines[0] == f"log likelihood: {expected['log_likelihood']:.4f}"


@pytest.mark.parametrize(
    ("task", "target", "message"),
    [
        ("regression", {}, "no target column 'price'"),
        ("regression", {"price": ["dear"]}, "'dear' in data row 1"),
        ("three classes", {"label": ["perhaps"]}, "'perhaps' in data row 1, which training did"),
        ("three classes", {"label": [""]}, "column 'label' has no value in data row 1"),
    ],
)
def test_evaluate_refuses(
    trained: Trained, refused: Callable[..., str], task: str, target: dict[str, Any], message: str
) -> None:
    """Would catch a target that is made up."""
    path = write_csv(Path("rows.csv"), {"a": [1.0], "b": [2.0], **target})
    assert message in refused("evaluate", trained(task).directory, path)


def test_an_export_is_the_model(
    trained: Trained, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a graph in other units than the table's."""
    functions, result = export._functions, trained("regression")
    monkeypatch.setattr(
        export, "_functions", lambda *given: {"predict_y": functions(*given)["predict_y"]}
    )
    capsys.readouterr()
    assert run("export", result.directory, "-o", "program", "--num-samples", 7) == 0
    assert "tf.saved_model.load('program')" in capsys.readouterr().out
    train = result.rows()[0]
    inputs, target = Standardiser.fit(train.X), Standardiser.fit(train.Y)
    X = np.array(list(NEW.values())).T
    got = tf.saved_model.load("program").predict_y(X)
    mean, variance = result.model().predict_y(inputs.transform(X), num_samples=7)
    # The inducing points' covariance is as singular as its relative jitter of 1e-6 lets it be, with
    # a condition number of 1e7, so that compiled and eager arithmetic differ by up to some 1e-9.
    np.testing.assert_allclose(got["mean"], target.inverse_transform(mean), rtol=1e-8)
    wanted = np.square(target.scale) * variance
    np.testing.assert_allclose(got["variance"], wanted, rtol=1e-8)
    columns = json.loads(Path("program/assets.extra/columns.json").read_text())
    encoder = {"columns": ["a", "b"], "categories": {}, "fill": {}, "origins": {}}
    assert columns == {"X": ["a", "b"], "Y": ["price"], "classes": None, "encoder": encoder}


def test_info_of_a_run_and_of_its_model(trained: Trained, capsys: Printed) -> None:
    """Would catch a run that is told of otherwise than it is."""
    result = trained("three classes")
    found = in_json(capsys, "info", result.directory)
    described = found["run"]
    assert described["columns"] == ["a", "b"] and described["classes"] == ["blue", "green", "red"]
    assert (described["steps"], described["training_rows"]) == (5, 30)
    assert described["scores"] == result.metrics["scores"]
    assert found["model"] == str(model_summary(result.model()))
    assert run("info", result.directory) == 0
    printed = capsys.readouterr().out
    assert "  columns: a, b\n" in printed and "  stop reason: took all 5 steps\n" in printed
    assert "deep Wishart process, depth 1" in printed and "error rate" in printed


def test_info_of_versions_and_of_an_unfinished_run(capsys: Printed) -> None:
    """Would catch a version of another package, and a run that is not told to go on."""
    assert in_json(capsys, "info")["versions"]["gpflow"] == version("gpflow")
    Path("run.unfinished").mkdir()
    Path("run.unfinished/options.json").touch()
    told = "fit --resume run goes on; no steps are kept"
    assert in_json(capsys, "info", "run") == {"run": {"unfinished": told}}


HOUSES = [*TINY, "--target", "price", "--test-fraction", "0.25", "--missing", "?", "--out", "run"]


@pytest.fixture
def houses(untrained: None) -> None:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    town, size = rng.choice(["north", "south", "west"], 40), rng.normal(100.0, 20.0, 40)
    price = size + 30.0 * (town == "south")
    data = pandas.DataFrame({"town": town, "size": size, "price": price})
    data.loc[3, "size"] = np.nan
    data.to_parquet("houses.parquet")
    new = pandas.DataFrame({"size": [90.0, None], "town": ["east", "south"], "note": [1, 2]})
    new.to_parquet("new.parquet")
    new.to_csv("new.csv", index=False, na_rep="?")


@pytest.mark.usefixtures("houses")
def test_a_table_with_categories_and_missing_cells(capsys: Printed) -> None:
    """Would catch an encoding or marks of missing cells that new rows do not have, or not told."""
    assert run("fit", "houses.parquet", "--impute", *HOUSES, "--json") == 0
    output, error = capsys.readouterr()
    result = json.loads(output)
    assert result["directory"] == "run" and result["training_rows"] == 30
    assert "column 'size': 1 missing cells filled with " in error
    description = json.loads(Path("run/run.json").read_text())
    assert description["encoder"]["categories"] == {"town": ["north", "south", "west"]}
    fill = description["encoder"]["fill"]["size"]
    assert fill == pytest.approx(100.0, abs=20.0)

    assert run("predict", "run", "new.csv", "-o", "out.csv", *FEW) == 0
    unseen, filled = capsys.readouterr().err.splitlines()
    assert unseen.startswith("gpflow-dwp predict: column 'town' holds categories that training did")
    assert unseen.endswith("taken as none of the known ones: 'east' (1 rows)")
    assert filled.endswith(f"'size': 1 missing cells filled with {fill}")
    assert run("predict", "run", "new.parquet", "-o", "of_parquet.csv", *FEW) == 0
    written, expected = read_csv(Path("of_parquet.csv")), read_csv(Path("out.csv"))
    assert list(written)[:4] == ["size", "town", "note", "price_mean"]
    assert written["price_mean"] == expected["price_mean"]
