"""``gpflow-dwp predict``: what it writes and refuses."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from command_line import TASKS, TrainedRun, columns, content, read_csv, run, write_csv

from gpflow_dwp.evaluation import mixture_cdf

Trained = Callable[[str], TrainedRun]


def predictions(result: TrainedRun, table: dict[str, Any], *options: str) -> dict[str, list[str]]:
    """The columns that ``gpflow-dwp predict`` writes."""
    path = write_csv(Path("new.csv"), table)
    assert run("predict", result.directory, path, "-o", "out.csv", "--overwrite", *options) == 0
    return read_csv(Path("out.csv"))


def numbers(table: dict[str, list[str]], *names: str) -> np.ndarray:
    return np.array([[float(value) for value in table[name]] for name in names])


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


NEW = {"a": [0.5, -1.0, 2.0], "b": [1e3, 950.0, 1.1e3]}
ADDED = {
    "regression": ["price_mean", "price_sd", "price_lower_95", "price_upper_95"],
    "two classes": ["label_predicted", "label_probability_no", "label_probability_yes"],
    "three classes": [
        "label_predicted",
        "label_probability_blue",
        "label_probability_green",
        "label_probability_red",
    ],
}


@pytest.mark.parametrize("task", TASKS)
def test_adds_columns(trained: Trained, task: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = predictions(trained(task), NEW)
    assert list(result) == ["a", "b", *ADDED[task]]
    np.testing.assert_array_equal(numbers(result, "a", "b"), list(NEW.values()))
    assert capsys.readouterr().out.endswith("3 predictions are in out.csv\n")


def test_regression_is_that_of_the_model_in_raw_units(trained: Trained) -> None:
    result = trained("regression")
    train, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    mean, deviation, lower, upper = numbers(table, *ADDED["regression"])
    moments = result.model().predict_y(result.standardised(test), seed=0)
    scale = train.Y.std()
    np.testing.assert_allclose(mean, train.Y.mean() + scale * moments[0].numpy()[:, 0], rtol=1e-12)
    np.testing.assert_allclose(deviation, scale * np.sqrt(moments[1].numpy()[:, 0]), rtol=1e-9)
    components = result.model().posterior(seed=0).predict_y_components(result.standardised(test))
    means = train.Y.mean() + scale * components[0].numpy()[..., 0]
    variances = scale**2 * components[1].numpy()[..., 0]
    np.testing.assert_allclose(mixture_cdf(lower, means, variances), 0.025, atol=1e-9)
    np.testing.assert_allclose(mixture_cdf(upper, means, variances), 0.975, atol=1e-9)


@pytest.mark.parametrize("task", ["two classes", "three classes"])
def test_probabilities_are_those_of_the_model(trained: Trained, task: str) -> None:
    result = trained(task)
    _, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    probabilities = numbers(table, *ADDED[task][1:]).T
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    tf.random.set_seed(0)  # the softmax draws from the global generator
    expected = result.model().predict_y(result.standardised(test), seed=0)[0].numpy()
    if task == "two classes":
        expected = np.hstack([1.0 - expected, expected])
    np.testing.assert_allclose(probabilities, expected, rtol=1e-9)
    # Labels are numbered in the order of their names; the likeliest one is predicted.
    assert test.classes is not None
    labels = sorted(test.classes)
    assert table["label_predicted"] == [labels[row.argmax()] for row in probabilities]


def test_reports_of_fit_and_predictions_agree(trained: Trained) -> None:
    result = trained("three classes")
    _, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    assert test.classes is not None
    truth = [test.classes[int(label)] for label in test.Y[:, 0]]
    wrong = np.mean([x != y for x, y in zip(table["label_predicted"], truth, strict=True)])
    assert result.deep_scores["error_rate"] == wrong


@pytest.mark.parametrize("task", TASKS)
def test_one_file_gives_one_result(trained: Trained, task: str) -> None:
    table = {name: values for name, values in columns(task).items() if name in "ab"}
    assert predictions(trained(task), table) == predictions(trained(task), table)


def test_another_seed_gives_other_draws(trained: Trained) -> None:
    first, second = (predictions(trained("regression"), NEW, "--seed", seed) for seed in "01")
    means = numbers(first, "price_mean"), numbers(second, "price_mean")
    assert not np.array_equal(*means)
    np.testing.assert_allclose(*means, atol=5.0)


def test_number_of_draws_is_an_option(trained: Trained) -> None:
    table = predictions(trained("regression"), NEW, "--num-samples", "1")
    mean, deviation, _, upper = numbers(table, *ADDED["regression"])
    # One draw is one normal distribution.
    np.testing.assert_allclose((upper - mean) / deviation, 1.959963984540054, rtol=1e-9)


def test_order_of_columns_and_further_columns_do_not_matter(trained: Trained) -> None:
    plain = predictions(trained("regression"), NEW)
    further = {"id": ["007", "008", "x"], "b": NEW["b"], "note": ["NA", "", "1.50"], "a": NEW["a"]}
    table = predictions(trained("regression"), further)
    assert list(table) == [*further, *ADDED["regression"]]
    for name in ADDED["regression"]:
        assert table[name] == plain[name]
    # Kept to the letter, like codes that only look like numbers.
    assert table["id"] == further["id"] and table["note"] == further["note"]


def test_a_target_that_is_there_is_kept(trained: Trained) -> None:
    table = predictions(trained("regression"), {**NEW, "price": [1, 2, "unknown"]})
    assert table["price"] == ["1", "2", "unknown"]


def test_rows_do_not_depend_on_each_other(trained: Trained) -> None:
    whole = predictions(trained("regression"), NEW)
    last = predictions(trained("regression"), {name: values[2:] for name, values in NEW.items()})
    np.testing.assert_allclose(
        numbers(last, *ADDED["regression"])[:, 0],
        numbers(whole, *ADDED["regression"])[:, 2],
        rtol=1e-9,
    )


def test_rows_without_values_are_left_out(trained: Trained) -> None:
    wanted = predictions(trained("regression"), {"a": [1.0, 2.0], "b": [1e3, 1e3]})
    Path("gaps.csv").write_text("\ufeffa,b\n\n1.0,1000.0\n,\n , \n2.0, 1000.0\n\n", "utf-8")
    assert run("predict", trained("regression").directory, "gaps.csv", "-o", "gaps-out.csv") == 0
    assert read_csv(Path("gaps-out.csv")) == wanted


def test_text_beyond_ascii_is_kept(trained: Trained) -> None:
    table = predictions(trained("regression"), {**NEW, "Straße": ["ä", "日本", "–"]})
    assert table["Straße"] == ["ä", "日本", "–"]


def test_an_existing_file_is_replaced_only_if_asked(
    trained: Trained, refused: Callable[..., str]
) -> None:
    table = write_csv(Path("new.csv"), NEW)
    arguments = ("predict", trained("regression").directory, table, "-o", "out.csv")
    Path("out.csv").write_text("precious")
    assert "out.csv exists; give --overwrite to replace it" in refused(*arguments)
    assert Path("out.csv").read_text() == "precious"


def test_a_crash_while_writing_leaves_the_old_file(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_csv(Path("new.csv"), NEW)
    Path("out.csv").write_text("precious")

    def crash(*_: Any) -> None:
        raise RuntimeError("the power fails")

    arguments = ("predict", trained("regression").directory, table, "-o", "out.csv")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", crash)
        assert run(*arguments, "--overwrite") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["new.csv", "out.csv"]
    assert Path("out.csv").read_text() == "precious"


def test_predicting_does_not_touch_the_run(trained: Trained) -> None:
    before = content(trained("regression").directory)
    predictions(trained("regression"), NEW)
    assert content(trained("regression").directory) == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0]}, "no feature column 'b'; the columns are 'a'"),
        ({"a": [1.0, "nan"], "b": [1, 2]}, "'a' has no value in data row 2 "),
        ({"a": [1.0, "inf"], "b": [1, 2]}, "'a' is not finite: inf in data row 2 "),
        ({"a": [1.0, "x"], "b": [1, 2]}, "'a' is not numeric: 'x' in data row 2 "),
        ({"a": [], "b": []}, "no data rows below the header"),
    ],
)
def test_refuses_tables(
    trained: Trained, refused: Callable[..., str], table: dict[str, Any], message: str
) -> None:
    path = write_csv(Path("new.csv"), table)
    printed = refused("predict", trained("regression").directory, path, "-o", "out.csv")
    assert message in printed and "new.csv" in printed


def test_refuses_columns_that_it_would_add(
    trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_csv(Path("new.csv"), {**NEW, "price_sd": [1, 1, 1]})
    assert run("predict", trained("regression").directory, path, "-o", "out.csv") == 2
    error = "gpflow-dwp predict: error: new.csv has a column 'price_sd' already\n"
    assert capsys.readouterr().err == error
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [("nowhere/out.csv", "nowhere is not a directory"), ("folder", "folder is a directory")],
)
def test_refuses_places(
    trained: Trained, refused: Callable[..., str], out: str, message: str
) -> None:
    path = write_csv(Path("new.csv"), NEW)
    Path("folder").mkdir()
    for options in ([], ["--overwrite"]):
        directory = trained("regression").directory
        assert message in refused("predict", directory, path, "-o", out, *options)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_numbers_that_cannot_be_computed_with_are_named(
    trained: Trained, refused: Callable[..., str], command: str
) -> None:
    table = write_csv(Path("new.csv"), {"a": [0.5, 1.7e308], "b": [1e3, 1e3], "price": [1.0, 2.0]})
    options = ["-o", "out.csv"] if command == "predict" else []
    message = refused(command, trained("regression").directory, table, *options)
    assert "new.csv: column 'a' holds 1.7e+308 in data row 2 (line 3), too far" in message


@pytest.mark.parametrize("table", ["absent.csv", "."])
def test_refuses_what_is_no_file(trained: Trained, refused: Callable[..., str], table: str) -> None:
    assert table in refused("predict", trained("regression").directory, table, "-o", "out.csv")


@pytest.mark.parametrize("directory", ["absent", "empty", "new.csv"])
def test_refuses_what_is_no_run(refused: Callable[..., str], directory: str) -> None:
    Path("empty").mkdir()
    path = write_csv(Path("new.csv"), NEW)
    message = refused("predict", directory, path, "-o", "out.csv")
    assert f"{directory} is not a run directory: it has no run.json" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:100], "run.json is damaged"),
        (lambda text: "[]", "run.json is damaged"),
        (lambda text: "{}", "run.json is damaged"),
        (lambda text: text.replace('"format_version": 2', '"format_version": 1'), "this version"),
        (lambda text: text.replace("gpflow_dwp.run", "another"), "not written by this version"),
        (lambda text: json.dumps({**json.loads(text), "inputs": None}), "run.json is damaged"),
        (lambda text: json.dumps({**json.loads(text), "inputs": {}}), "run.json is damaged"),
        (lambda text: json.dumps({**json.loads(text), "target": None}), "run.json is damaged"),
        (lambda text: json.dumps({**json.loads(text), "target": 3}), "run.json is damaged"),
        (lambda text: json.dumps({**json.loads(text), "classes": ["x"]}), "run.json is damaged"),
        (lambda text: json.dumps({**json.loads(text), "feature_names": ["a"]}), "is damaged"),
        (lambda text: json.dumps({**json.loads(text), "feature_names": None}), "is damaged"),
        (lambda text: json.dumps({**json.loads(text), "surplus": 1}), "run.json is damaged"),
    ],
)
def test_refuses_damaged_descriptions(
    trained: Trained,
    refused: Callable[..., str],
    change: Callable[[str], str],
    message: str,
) -> None:
    shutil.copytree(trained("regression").directory, "run")
    path = write_csv(Path("new.csv"), NEW)
    Path("run/run.json").write_text(change(Path("run/run.json").read_text()))
    assert message in refused("predict", "run", path, "-o", "out.csv")


def test_refuses_a_run_without_its_model(trained: Trained, refused: Callable[..., str]) -> None:
    path = write_csv(Path("new.csv"), NEW)
    shutil.copytree(trained("regression").directory, "run")
    (weights,) = Path("run/model").glob("weights-*.npz")
    weights.write_bytes(weights.read_bytes()[:-1])
    assert re.search("weights-.*is damaged", refused("predict", "run", path, "-o", "out.csv"))
    shutil.rmtree("run/model")
    message = refused("predict", "run", path, "-o", "out.csv")
    assert "run/model is not a saved model" in message
