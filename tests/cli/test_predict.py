"""``gpflow-dwp predict``: what it writes and refuses."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import tensorflow as tf
from command_line import TASKS, TrainedRun, content, read_csv, run, write_csv

from gpflow_dwp import evaluation
from gpflow_dwp.cli.predict import _write
from gpflow_dwp.data.reading import Format, read_file
from gpflow_dwp.evaluation.mixture import mixture_cdf

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


@pytest.mark.parametrize("task", TASKS)
def test_adds_columns(trained: Trained, task: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(trained(task).directory)
    result = predictions(trained(task), NEW, *FEW)
    assert content(trained(task).directory) == before
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


def test_probabilities_are_those_of_the_model(trained: Trained) -> None:
    result = trained("three classes")
    _, test = result.rows()
    table = predictions(result, {"a": test.X[:, 0], "b": test.X[:, 1]})
    probabilities = numbers(table, *ADDED["three classes"][1:]).T
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    tf.random.set_seed(0)  # the softmax draws from the global generator
    expected = result.model().predict_y(result.standardised(test), seed=0)[0].numpy()
    np.testing.assert_allclose(probabilities, expected, rtol=1e-9)
    # Labels are numbered in the order of their names; the likeliest one is predicted.
    assert test.classes is not None
    labels = sorted(test.classes)
    assert table["label_predicted"] == [labels[row.argmax()] for row in probabilities]
    truth = [test.classes[int(label)] for label in test.Y[:, 0]]
    wrong = np.mean([x != y for x, y in zip(table["label_predicted"], truth, strict=True)])
    assert result.deep_scores["error_rate"] == wrong  # as fit reports it


def test_draws_are_options(trained: Trained) -> None:
    one = ("--num-samples", "1", "--seed")
    tables = [predictions(trained("regression"), NEW, *one, seed) for seed in "01"]
    for mean, deviation, _, upper in (numbers(table, *ADDED["regression"]) for table in tables):
        # One draw is one normal distribution.
        np.testing.assert_allclose((upper - mean) / deviation, 1.959963984540054, rtol=1e-9)
    assert tables[0]["price_mean"] != tables[1]["price_mean"]


def test_order_of_columns_and_further_columns_do_not_matter(trained: Trained) -> None:
    plain = predictions(trained("regression"), NEW, *FEW)
    further = {"id": ["007", "008", "x"], "b": NEW["b"], "note": ["NA", "", "1.50"], "a": NEW["a"]}
    further |= {"price": ["1", "2", "unknown"], "Straße": ["ä", "日本", "–"]}
    table = predictions(trained("regression"), further, *FEW)
    assert list(table) == [*further, *ADDED["regression"]]
    for name in ADDED["regression"]:
        assert table[name] == plain[name]
    # Kept to the letter, like codes that only look like numbers.
    for name in ("id", "note", "price", "Straße"):
        assert table[name] == further[name]


def test_blank_lines_are_left_out_and_rows_without_values_are_not(
    trained: Trained, refused: Callable[..., str]
) -> None:
    wanted = predictions(trained("regression"), {"a": [1.0, 2.0], "b": [1e3, 1e3]}, *FEW)
    Path("gaps.csv").write_text("\ufeffa,b\n\n1.0,1000.0\n \n2.0, 1000.0\n\n", "utf-8")
    directory = trained("regression").directory
    assert run("predict", directory, "gaps.csv", "-o", "gaps-out.csv", *FEW) == 0
    assert read_csv(Path("gaps-out.csv")) == wanted
    Path("gaps.csv").write_text("a,b\n1.0,1000.0\n\n , \n2.0,1000.0\n", "utf-8")
    message = refused("predict", directory, "gaps.csv", "-o", "refused.csv")
    assert "column 'a' has no value in data row 2" in message


@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ", "t.csv.bz2", "t.csv.xz", "t.csv.zip"])
def test_a_file_is_packed_as_its_name_says(tmp_path: Path, name: str) -> None:
    frame = pandas.DataFrame({"a": [1.5, 2.5]})
    for _ in range(2):
        _write(tmp_path / name, frame, Format())
    content = (tmp_path / name).read_bytes()
    assert (content[:2] == b"\x1f\x8b") == name.lower().endswith("gz")
    assert not content.startswith(b"a\n")
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / name), frame)
    assert read_file(tmp_path / name).frame["a"].tolist() == ["1.5", "2.5"]
    if name.endswith("zip"):
        assert zipfile.ZipFile(tmp_path / name).namelist() == ["t.csv"]


def test_without_a_file_predictions_are_printed(
    trained: Trained, capsys: pytest.CaptureFixture[str], refused: Callable[..., str]
) -> None:
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
    assert "give --out" in refused("predict", trained("regression").directory, "new.csv", "--json")


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

    arguments = ("predict", trained("regression").directory, table, "-o", "out.csv", *FEW)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", crash)
        assert run(*arguments, "--overwrite") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["new.csv", "out.csv"]
    assert Path("out.csv").read_text() == "precious"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0]}, "no feature column 'b'; the columns are 'a'"),
        ({"a": [1.0, "nan"], "b": [1, 2]}, "'a' has no value in data row 2"),
    ],
)
def test_refuses_tables(
    trained: Trained, refused: Callable[..., str], table: dict[str, Any], message: str
) -> None:
    path = write_csv(Path("new.csv"), table)
    printed = refused("predict", trained("regression").directory, path, "-o", "out.csv")
    assert message in printed and "new.csv" in printed


@pytest.mark.parametrize(
    ("table", "out", "error"),
    [
        ({**NEW, "price_sd": [1, 1, 1]}, "out.csv", "new.csv has a column 'price_sd' already"),
        (
            {**NEW, "x": [1, 1, 1], "x ": [1, 1, 1]},
            "out.parquet",
            "new.csv has two columns of one name, which out.parquet cannot have",
        ),
        (
            NEW,
            "out.csv.zst",
            "out.csv.zst needs zstandard, which is not installed: python -m pip install zstandard",
        ),
    ],
)
def test_refuses_what_it_could_not_write_before_it_predicts(
    trained: Trained,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: dict[str, Any],
    out: str,
    error: str,
) -> None:
    """Would catch that all is computed before it turns out that it cannot be kept."""
    monkeypatch.setattr(evaluation, "predict", None)
    monkeypatch.setattr("gpflow_dwp.cli.predict.find_spec", lambda _: None)
    path = write_csv(Path("new.csv"), table)
    assert run("predict", trained("regression").directory, path, "-o", out) == 2
    assert capsys.readouterr().err == f"gpflow-dwp predict: error: {error}\n"
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("nowhere/out.csv", "nowhere is not a directory"),
        ("folder", "--out folder is there already, and no file"),
    ],
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
    assert "new.csv: column 'a' holds 1.7e+308 in data row 2, too far" in message


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
        (lambda text: text.replace('"format_version": 2', '"format_version": 1'), "this version"),
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
    saved = Path("run/model/model.zip")
    saved.write_bytes(saved.read_bytes()[:-1])
    assert re.search(
        "model.zip: it is not a saved model, or damaged",
        refused("predict", "run", path, "-o", "out.csv"),
    )
    shutil.rmtree("run/model")
    message = refused("predict", "run", path, "-o", "out.csv")
    assert "run/model is not a saved model" in message
