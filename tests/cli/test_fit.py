"""``gpflow-dwp fit``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from command_line import (
    TASKS,
    TINY,
    TrainedRun,
    columns,
    content,
    fit_options,
    read_csv,
    run,
    write_csv,
)
from scipy import special, stats
from sklearn.linear_model import BayesianRidge

from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.models import load_model
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.training import TrainingHistory, fit

Trained = Callable[[str], TrainedRun]
REGRESSION = fit_options("regression")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


FIGURES = [
    f"{name}.png"
    for name in ("calibration", "effect", "learning_curve", "predictions", "relevance")
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("task", TASKS)
def test_prints_a_table_of_scores(trained: Trained, task: str) -> None:
    result = trained(task)
    assert result.exit_code == 0
    first, head, rule, *rows, relevance, last = result.printed.splitlines()
    target = "price" if task == "regression" else "label"
    assert first == f"{target}: 30 training rows, 10 test rows, 2 inputs"
    assert relevance.startswith("Predictions change most with ")
    error, named = ("RMSE", "rmse") if task == "regression" else ("error rate", "error_rate")
    assert head.split("  ")[0] == "model"
    for name in ("ELBO per datum", "log-likelihood", error, "seconds"):
        assert name in head
    assert set(rule) == {"-", " "}
    simple, process = ("logistic regression", "sparse GP (GPflow's SVGP)")
    if task == "regression":
        simple, process = "linear regression", "exact GP (GPflow's GPR)"
    names = [simple, "gradient boosting", process, "deep Wishart process, depth 2"]
    assert list(result.metrics["scores"]) == names
    for name, row in zip(names, rows, strict=True):
        assert row.startswith(name)
        score = result.metrics["scores"][name]
        elbo = "-" if score["elbo"] is None else f"{score['elbo']:.3f}"
        shown = [elbo, f"{score['log_likelihood']:.3f}"]
        if task == "regression":
            shown += [f"{score['crps']:.4g}", f"{score[named]:.4g}", f"{score['r2']:.3f}"]
        else:
            shown += [f"{score[named]:.4g}", f"{score['ece']:.3f}"]
        assert row.removeprefix(name).split()[:-1] == shown
        assert score["seconds"] > 0.0
    assert last == f"Model, metrics and figures are in {result.directory}"


def test_regression_scores_are_those_of_the_saved_model_in_raw_units(trained: Trained) -> None:
    result = trained("regression")
    train, test = result.rows()
    model = result.model()
    mean, variance = (
        part.numpy()[..., 0]
        for part in model.posterior(seed=0).predict_f_components(result.standardised(test))
    )
    # To raw units, with NumPy alone.
    offset, scale = train.Y.mean(), train.Y.std()
    means = offset + scale * mean
    deviations = scale * np.sqrt(variance + model.likelihood.variance.numpy())
    densities = stats.norm.logpdf(test.Y[:, 0], means, deviations)
    expected = np.mean(special.logsumexp(densities, axis=0) - np.log(len(densities)))
    assert result.deep_scores["log_likelihood"] == pytest.approx(expected, rel=1e-9)
    rmse = np.sqrt(np.mean((means.mean(axis=0) - test.Y[:, 0]) ** 2))
    assert result.deep_scores["rmse"] == pytest.approx(rmse, rel=1e-9)
    assert 5.0 < rmse < 40.0  # raw: the target's deviation is about 20


def test_label_scores_are_those_of_the_saved_model(trained: Trained) -> None:
    result = trained("three classes")
    _, test = result.rows()
    model, X = result.model(), result.standardised(test)
    labels = test.Y[:, 0].astype(int)
    tf.random.set_seed(0)
    probability = model.posterior(seed=0).predict_y(X)[0].numpy()
    expected = np.log(probability[np.arange(len(labels)), labels]).mean()
    # The softmax has no closed form: 100 random numbers for each point and draw.
    assert result.deep_scores["log_likelihood"] == pytest.approx(expected, abs=0.02)
    assert result.deep_scores["error_rate"] == np.mean(probability.argmax(axis=1) != labels)


def test_linear_regression_is_judged_in_raw_units(trained: Trained) -> None:
    result = trained("regression")
    train, test = result.rows()
    model = BayesianRidge(compute_score=True).fit(result.standardised(train), train.Y[:, 0])
    mean, deviation = model.predict(result.standardised(test), return_std=True)
    scores = result.metrics["scores"]["linear regression"]
    expected = {
        "elbo": model.scores_[-1] / len(train.X),
        "log_likelihood": stats.norm.logpdf(test.Y[:, 0], mean, deviation).mean(),
        "rmse": np.sqrt(np.mean((mean - test.Y[:, 0]) ** 2)),
    }
    for name, value in expected.items():  # its stopping rule depends a little on the unit
        assert scores[name] == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("task", TASKS)
def test_what_a_run_leaves(trained: Trained, task: str) -> None:
    result = trained(task)
    metrics, description, (train, _) = result.metrics, result.description, result.rows()
    assert (metrics["training_rows"], metrics["test_rows"], metrics["steps"]) == (30, 10, 5)
    assert metrics["stop_reason"] == "took all 5 steps"
    assert metrics["provenance"]["seed"] == 0
    assert metrics["provenance"]["versions"]["gpflow"] == gpflow.__version__
    calibration = "coverage_of_95%_intervals" if task == "regression" else "mean_confidence"
    assert 0.0 <= metrics[calibration] <= 1.0

    assert description["feature_names"] == ["a", "b"]
    labels = ["blue", "green", "red"]
    assert description["classes"] == (None if task == "regression" else labels)
    # Of the training rows alone.
    np.testing.assert_allclose(description["inputs"]["mean"], train.X.mean(axis=0))
    np.testing.assert_allclose(description["inputs"]["scale"], train.X.std(axis=0))
    if task == "regression":
        np.testing.assert_allclose(description["target"]["mean"], train.Y.mean(axis=0))
        np.testing.assert_allclose(description["target"]["scale"], train.Y.std(axis=0))
    else:
        assert description["target"] is None
    assert description["options"]["num_steps"] == 5
    assert description["options"]["table"] == str(result.table)

    figures = content(result.directory / "figures")
    assert sorted(figures) == FIGURES
    assert all(figure.startswith(PNG) and len(figure) > 1_000 for figure in figures.values())

    history = read_csv(result.directory / "history.csv")
    assert history["step"] == ["1", "2", "3", "4", "5"]
    elbo = np.mean([float(value) for value in history["elbo_per_datum"]])
    assert result.deep_scores["elbo"] == pytest.approx(elbo)


@pytest.mark.usefixtures("untrained")
def test_bound_is_in_raw_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "3")
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION, "--out", "run") == 0
    result = TrainedRun("regression", table, Path("run"), 0, "")
    scale = result.rows()[0].Y.std()
    # Training ended at bounds of -2 to -1 per datum, in standardised units.
    assert result.deep_scores["elbo"] == pytest.approx(-1.5 - np.log(scale))
    first = float(read_csv(Path("run/history.csv"))["elbo_per_datum"][0])
    assert first == pytest.approx(-2.0 - np.log(scale))
    assert result.metrics["provenance"]["threads"] == 3


@pytest.mark.usefixtures("untrained")
def test_without_a_table_it_takes_the_yachts() -> None:
    assert run("fit", *TINY) == 0
    description = json.loads(Path("runs/yacht-1/run.json").read_text())
    assert description["target_name"] == "resistance" and len(description["feature_names"]) == 6


@pytest.mark.usefixtures("untrained")
def test_a_run_is_replaced_only_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION, "--out", "new/run") == 0
    before = content(Path("new"))
    capsys.readouterr()

    assert run("fit", table, *REGRESSION, "--out", "new/run") == 2
    error = "gpflow-dwp fit: error: new/run holds another run; give --overwrite to replace it\n"
    assert capsys.readouterr().err == error
    assert content(Path("new")) == before

    assert run("fit", table, *REGRESSION, "--seed", "1", "--out", "new/run", "--overwrite") == 0
    after = content(Path("new"))
    assert json.loads(after["run/run.json"])["options"]["seed"] == 1
    assert len(after) == len(before)  # replaced, not mixed, and nothing beside it


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (NonFiniteBoundError("Training stopped at step 3.", step=3), 1, "Training stopped at step"),
        (KeyboardInterrupt(), 130, "interrupted, nothing was written"),
    ],
)
def test_training_that_fails_leaves_no_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        # Another run that starts meanwhile takes another directory.
        assert Path("runs/table-1.unfinished").is_dir()
        raise error

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", fail)
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION) == code
    printed = capsys.readouterr().err
    assert printed.startswith(f"gpflow-dwp fit: {message}") and len(printed.splitlines()) == 1
    assert not Path("runs").exists()


@pytest.mark.usefixtures("untrained")
def test_an_interrupted_run_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop_early(model: Any, *_: Any, **__: Any) -> TrainingHistory:
        return TrainingHistory(
            np.zeros(3), np.zeros([3, 2]), model.num_data, 1.0, "interrupted after step 3"
        )

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", stop_early)
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION, "--out", "run") == 0
    assert "Training was interrupted after step 3.\n" in capsys.readouterr().out
    assert json.loads(Path("run/metrics.json").read_text())["steps"] == 3


@pytest.mark.parametrize("option", [["--likelihood", "warped"]])
def test_labels_have_no_noise(refused: Callable[..., str], option: list[str]) -> None:
    table = write_csv(Path("table.csv"), columns("two classes"))

    message = refused("fit", table, *fit_options("two classes"), *option)

    assert f"{option[0]} is for --task regression" in message


@pytest.mark.usefixtures("quick")
def test_devices_train_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a strategy that does not reach model or training. The CPU stands for the GPUs."""
    train, asked = fit, list[Any]()

    def look(*arguments: Any, strategy: Any, **named: Any) -> TrainingHistory:
        asked.append(strategy)
        return train(*arguments, strategy=strategy, **named)

    path = write_csv(Path("table.csv"), columns("regression"))
    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", look)
    gpus = [tf.config.LogicalDevice(f"/device:GPU:{index}", "GPU") for index in range(2)]
    mirrors = {("GPU:0",): tf.distribute.OneDeviceStrategy("CPU:0")}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: gpus)
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda names: mirrors[tuple(names)])

    assert run("fit", path, *REGRESSION, "--devices", "1", "--out", "devices") == 0
    assert run("fit", path, *REGRESSION, "--out", "one") == 0

    assert isinstance(asked[0], tf.distribute.OneDeviceStrategy) and asked[1] is None
    assert content(Path("devices"))["history.csv"] == content(Path("one"))["history.csv"]
    assert "devices: 1\n" in Path("devices/config.yaml").read_text()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("model", "options", "title"),
    [
        ("DGP", ("--latent-dim", "2", "--importance-samples", "3"), "deep GP"),
        ("VMG", ("--hidden-units", "7", "--num-pseudo-data", "1"), "matrix-Gaussian network"),
        ("DWP", ("--likelihood", "warped_student_t"), "deep Wishart process"),
    ],
)
def test_every_model_is_trained_saved_and_predicts(
    model: str, options: tuple[str, ...], title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an option that does not reach the model, and one that predictions cannot do with."""
    asked: list[int] = []

    def train(*arguments: Any, estimator: Estimator, **named: Any) -> TrainingHistory:
        asked.append(estimator.num_importance_samples)
        return fit(*arguments, estimator=estimator, **named)

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", train)
    table = columns("regression")
    path = write_csv(Path("table.csv"), table)

    assert run("fit", path, *REGRESSION, "--model", model, *options, "--out", "run") == 0
    assert run("predict", "run", path, "-o", "predicted.csv", "--num-samples", "3") == 0

    metrics = json.loads(Path("run", "metrics.json").read_text())
    assert np.isfinite(metrics["scores"][f"{title}, depth 2"]["log_likelihood"])
    assert all(np.isfinite(float(mean)) for mean in read_csv(Path("predicted.csv"))["price_mean"])
    trained = load_model("run/model")
    assert trained.num_inputs == 2 and asked == [3 if model == "DGP" else 1]
    if model == "DGP":
        assert trained.latent_layer.latent_dim == 2
    elif model == "DWP":
        assert type(trained.likelihood).__name__ == "WarpedStudentT"
        assert "likelihood: warped_student_t\n" in Path("run/config.yaml").read_text()
    elif model == "VMG":
        assert [layer.num_outputs for layer in trained.layers] == [7, 1]
        assert [layer.num_pseudo_data for layer in trained.layers] == [1, 1]
        standardised = np.std(table["price"])
        assert trained.likelihood.prior_rate == pytest.approx(6.0 / standardised**2, rel=0.5)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("options", "rows", "expected"),
    [
        ((), 40, ("fast", 3_000, 2, None, "RegressionGPLayer")),
        (("--batch-size", "10"), 40, ("fast", 3_000, 2, 10, "GlobalInducingGPLayer")),
        (
            ("--output-posterior", "pseudo_targets"),
            40,
            ("fast", 3_000, 2, None, "GlobalInducingGPLayer"),
        ),
        ((), 2_700, ("fast", 3_000, 2, None, "GlobalInducingGPLayer")),
        (("--model", "VMG"), 40, ("vmg", 20_000, 1, None, "MatrixGaussianLayer")),
    ],
)
def test_what_a_model_is_trained_with_by_default(
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    rows: int,
    expected: tuple[object, ...],
) -> None:
    def look(model: Any, _: Any, num_steps: int, *, batch_size: Any, protocol: str, **__: Any):
        layer = type(model.layers[-1]).__name__
        assert (protocol, num_steps, model.num_samples, batch_size, layer) == expected
        raise KeyboardInterrupt

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.fit", look)
    table = write_csv(Path("table.csv"), columns("regression", rows))
    arguments = ("--target", "price", "--depth", "2", "--num-inducing", "8")
    assert run("fit", table, *arguments, *options) == 130


@pytest.mark.usefixtures("quick")
def test_depth_kernel_and_warp_are_chosen_by_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a choice that is not the model that is kept, and one that is not told of."""
    table = write_csv(Path("table.csv"), columns("regression", 20))
    options = ("--likelihood", "gaussian", "--num-inducing", "5", "--num-steps", "3", "--quiet")

    assert run("fit", table, "--target", "price", *options, "--out", "run") == 0

    told = capsys.readouterr().out
    model = load_model("run/model")
    metrics = json.loads(Path("run/metrics.json").read_text())
    depth = len(model.layers)
    assert f"Chosen: depth {depth}, " in told and metrics["reason"] in told
    assert list(metrics["scores"]) == [f"deep Wishart process, depth {depth}"]
    candidates = metrics["candidates"]
    assert {each["likelihood"] for each in candidates} == {"gaussian"}
    last = [each for each in candidates if each["depth"] == depth][-1]
    assert last["kernel"] == type(model.layers[0].kernel).__name__
    score = metrics["scores"][f"deep Wishart process, depth {depth}"]
    offset = json.loads(Path("run/run.json").read_text())["target"]["scale"][0]
    assert score["elbo"] == pytest.approx(last["elbo"] / last["num_data"] - np.log(offset))


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("regression", ["--target", "prize"], "target column 'prize'.*mean 'price'"),
        ("regression", [], "--target is missing"),
        ("two classes", ["--target", "label"], "not numeric.*task classification"),
        (
            "regression",
            ["--target", "price", "--task", "classification"],
            "'price'.*no labels.*task regression",
        ),
    ],
)
def test_refuses_tables(
    refused: Callable[..., str], task: str, options: list[str], message: str
) -> None:
    path = write_csv(Path("table.csv"), columns(task))
    printed = refused("fit", path, *options, *TINY, "--out", "run")
    assert re.search(message, printed), printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", ""], "Invalid value .* for --kernel. Choose from: .ArcCosine"),
        (["--kernel", "Linear"], "Invalid value .Linear. for --kernel. Choose from"),
        (["--posterior", "B"], 'Invalid value "B" for --posterior. Choose from: "AB"'),
        (["--model", "GP"], 'Invalid value "GP" for --model. Choose from: "DWP"'),
        (["--model", "DGP", "--posterior", "A"], "--posterior is not for --model DGP"),
        (["--model", "DGP", "--whiten"], "--whiten is not for --model DGP"),
        (["--model", "DIWP", "--width", "3"], "--width is not for --model DIWP"),
        (["--num-pseudo-data", "3"], "--num-pseudo-data is not for --model DWP"),
        (["--model", "VMG", "--kernel", "RBF"], "--kernel is not for --model VMG"),
        (["--model", "VMG", "--latent-dim", "1"], "--latent-dim is not for --model VMG"),
        (["--model", "VMG", "--likelihood", "warped"], "--likelihood is not for --model VMG"),
        (["--importance-samples", "2"], "--importance-samples are draws of latent variables"),
        (
            ["--model", "VMG", "--importance-samples", "2"],
            "--importance-samples must be 1 for --model VMG",
        ),
        (["--devices", "2"], "--devices 2 needs as many GPUs; TensorFlow finds CPU:0"),
        (["--width", "0"], "--width: must be a positive integer up to 1000000, got '0'"),
        (["--test-fraction", "0"], "--test-fraction: must be between 0 and 1, got '0'"),
        (["--test-fraction", "0.999"], "test_fraction 0.999 of 40 rows is 40: none is left"),
        (["--seed", "-1"], "--seed"),
        (["--out", "table.csv"], "--out table.csv is the table that is read"),
        (["--out", "file"], "--out file is there already, and no directory"),
        (["--out", "table.csv/run"], "table.csv/run"),
        (["--out", "."], r"\. is where you are, or above it"),
        (["--out", ".."], r"\.\. is where you are, or above it"),
    ],
)
def test_refuses_options(refused: Callable[..., str], options: list[str], message: str) -> None:
    path = write_csv(Path("table.csv"), columns("regression"))
    Path("file").touch()
    assert re.search(message, refused("fit", path, *REGRESSION, *options))


def test_refuses_a_file_that_is_missing(refused: Callable[..., str]) -> None:
    assert "houses.csv: no such file" in refused("fit", "houses.csv", *REGRESSION)


@pytest.mark.parametrize("options", [["--target", "price"], ["--task", "classification"]])
def test_refuses_options_without_a_table(refused: Callable[..., str], options: list[str]) -> None:
    assert "--target and --task belong to a table of yours" in refused("fit", *options)


@pytest.mark.parametrize("description", [None, "not JSON", "[]", '{"format": "of another tool"}'])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_refuses_a_directory_that_is_no_run(
    refused: Callable[..., str], description: str | None, overwrite: list[str]
) -> None:
    path = write_csv(Path("table.csv"), columns("regression"))
    Path("precious").mkdir()
    Path("precious/thesis.txt").write_text("the only copy")
    if description is not None:
        Path("precious/run.json").write_text(description)
    message = refused("fit", path, *REGRESSION, "--out", "precious", *overwrite)
    assert "precious holds something that is not a run" in message
    assert Path("precious/thesis.txt").read_text() == "the only copy"


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            {"a": range(40), "y": [float(row == 7) for row in range(40)]},
            ["--target", "y", "--seed", "6"],
            "the 36 training rows hold one value only of 'y'",
        ),
        (
            {"a": range(40), "y": ["x", "x", *(["y", "z"] * 19)]},
            ["--target", "y", "--task", "classification", "--test-fraction", "0.9"],
            "the 4 training rows hold 2 of the classes only of 'y'",
        ),
    ],
)
def test_refuses_a_split_that_leaves_nothing_to_learn(
    refused: Callable[..., str], table: dict[str, Any], options: list[str], message: str
) -> None:
    assert message in refused("fit", write_csv(Path("table.csv"), table), *options, *TINY)


@pytest.mark.parametrize(
    "option", ["--model DGP", "--devices 1", "--log log.csv", "--validation-metric rmse"]
)
def test_options_for_one_model_refuse_a_choice_of_depth(
    refused: Callable[..., str], option: str
) -> None:
    table = write_csv(Path("table.csv"), columns("regression"))
    choice = ["--target", "price", "--depth", "auto", "--validation-fraction", "0.2"]
    named = option if option.endswith(("DGP", "rmse")) else option.split()[0]
    expected = f"--depth auto cannot go with {named}, which is for one model: give its --depth"
    assert expected in refused("fit", table, *choice, *option.split())


@pytest.mark.usefixtures("quick")
def test_rows_that_are_held_out_stop_models_of_a_choice_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(data: Any, *, validation_data: Any, patience: int, **_: Any) -> None:
        assert [len(part) for part in (*data, *validation_data)] == [24, 24, 6, 6]
        assert patience == 3
        raise KeyboardInterrupt

    monkeypatch.setattr("gpflow_dwp.cli.fit_training.select_model", look)
    table = write_csv(Path("table.csv"), columns("regression"))
    options = [
        "--target",
        "price",
        "--test-fraction",
        "0.25",
        "--validation-fraction",
        "0.2",
        "--patience",
        "3",
    ]
    assert run("fit", table, *options) == 130
