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
from command_line import TASKS, TINY, TrainedRun, columns, fit_options, read_csv, run, write_csv

from gpflow_dwp.cli import training
from gpflow_dwp.cli.reports import scores_as_text
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.models import load_model
from gpflow_dwp.training.callbacks import SHOWN_OFFSET

REGRESSION = fit_options("regression")


FIGURES = [f"{name}.png" for name in ("calibration", "effect", "learning_curve", "predictions")]


@pytest.mark.parametrize("task", TASKS)
def test_what_a_run_prints_and_leaves(trained: Callable[[str], TrainedRun], task: str) -> None:
    """Would catch a model without a row, and a table of other scores than the files have."""
    result = trained(task)
    metrics, description, (train, _) = result.metrics, result.description, result.rows()
    scores, is_number = metrics["scores"], task == "regression"
    first, *table, relevance, last = result.printed.splitlines()
    simple = ["logistic regression", "gradient boosting"]
    if is_number:
        simple = ["linear regression", "gradient boosting", "exact GP (GPflow's GPR)"]
    target = "price" if is_number else "label"
    assert result.exit_code == 0
    assert first == f"{target}: 30 training rows, 10 test rows, 2 inputs"
    assert "\n".join(table) == scores_as_text(scores)
    assert [*scores] == [*simple, "deep Wishart process, depth 1"]
    assert all(score["seconds"] > 0.0 for score in scores.values())
    assert relevance.startswith("Predictions change most with ")
    assert last == f"Model, metrics and figures are in {result.directory}"

    assert (metrics["training_rows"], metrics["test_rows"], metrics["steps"]) == (30, 10, 5)
    assert metrics["stop_reason"] == "took all 5 steps"
    assert metrics["provenance"]["versions"]["gpflow"] == gpflow.__version__
    calibration = "coverage_of_95%_intervals" if is_number else "mean_confidence"
    assert 0.0 <= metrics[calibration] <= 1.0
    options = metrics["options"]
    assert (options["num_steps"], options["table"]) == (5, str(result.table))
    assert description["encoder"]["columns"] == ["a", "b"]
    assert description["classes"] == (None if is_number else ["blue", "green", "red"])
    # Of the training rows alone.
    parts = {"inputs": train.X, "target": train.Y} if is_number else {"inputs": train.X}
    for name, values in parts.items():
        np.testing.assert_allclose(description[name]["mean"], values.mean(axis=0))
        np.testing.assert_allclose(description[name]["scale"], values.std(axis=0))
    assert is_number or description["target"] is None
    assert sorted(path.name for path in (result.directory / "figures").iterdir()) == FIGURES
    history = read_csv(result.directory / "history.csv")
    assert history["step"] == ["1", "2", "3", "4", "5"]
    elbo = np.mean([float(value) for value in history["elbo_per_datum"]])
    assert result.deep_scores["elbo"] == pytest.approx(elbo)


@pytest.mark.usefixtures("untrained")
def test_bound_is_in_raw_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of table and history, and what bars add to theirs; catches two numbers in two units."""
    shown, untrained = list[float](), training.fit

    def look(*arguments: Any, **named: Any) -> Any:
        shown.append(SHOWN_OFFSET.get())
        return untrained(*arguments, **named)

    monkeypatch.setattr(training, "fit", look)
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION, "--out", "run") == 0
    result = TrainedRun("regression", table, Path("run"), 0, "")
    scale = result.rows()[0].Y.std()
    # Training ended at bounds of -2 to -1 per datum, in standardised units.
    assert result.deep_scores["elbo"] == pytest.approx(-1.5 - np.log(scale))
    first = float(read_csv(Path("run/history.csv"))["elbo_per_datum"][0])
    assert first == pytest.approx(-2.0 - np.log(scale))
    assert shown == [pytest.approx(-np.log(scale))] and SHOWN_OFFSET.get() == 0.0


@pytest.mark.usefixtures("untrained")
def test_without_a_table_it_takes_the_yachts() -> None:
    assert run("fit", *TINY) == 0
    description = json.loads(Path("runs/yacht-1/run.json").read_text())
    assert description["target_name"] == "resistance"
    assert len(description["encoder"]["columns"]) == 6


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

    monkeypatch.setattr("gpflow_dwp.cli.training.fit", fail)
    table = write_csv(Path("table.csv"), columns("regression"))
    assert run("fit", table, *REGRESSION) == code
    printed = capsys.readouterr().err
    assert printed.startswith(f"gpflow-dwp fit: {message}") and len(printed.splitlines()) == 1
    assert not any(Path("runs").iterdir())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("model", "options", "title"),
    [
        ("DGP", ("--depth", "2", "--kernel", "RBF"), "deep GP, depth 2"),
        ("DWP", ("--depth", "1", "--likelihood", "warped_student_t"), None),
    ],
)
def test_every_model_is_trained_saved_and_predicts(
    model: str, options: tuple[str, ...], title: str | None
) -> None:
    """Catches an option that does not reach the model, and one that predictions cannot do with."""
    path = write_csv(Path("table.csv"), columns("regression", 20))
    few = ("--target", "price", "--num-steps", "1", "--num-inducing", "8", "--quiet")

    assert run("fit", path, *few, "--model", model, *options, "--out", "run") == 0
    assert run("predict", "run", path, "-o", "predicted.csv", "--num-samples", "3") == 0

    metrics = json.loads(Path("run", "metrics.json").read_text())
    scores = metrics["scores"][title or "deep Wishart process, depth 1"]
    assert np.isfinite(scores["log_likelihood"])
    assert all(np.isfinite(float(mean)) for mean in read_csv(Path("predicted.csv"))["price_mean"])
    trained = load_model("run/model")
    assert (trained.num_inputs, trained.inducing_variable.Z.shape[0]) == (2, 8)
    likelihood = "WarpedStudentT" if model == "DWP" else "Gaussian"
    assert type(trained.likelihood).__name__ == likelihood
    assert type(trained.layers[0].kernel).__name__ == "SquaredExponential"
    assert metrics["options"]["likelihood"] == (None if model == "DGP" else "warped_student_t")


@pytest.mark.usefixtures("quick")
def test_depth_kernel_and_warp_are_chosen_by_the_bound(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a choice that is not the model that is kept, and one that is not told of."""
    monkeypatch.setattr("gpflow_dwp.selection.depth._DEEP_KERNELS", ("SquaredExponential",))
    monkeypatch.setattr("gpflow_dwp.selection.policy.STAGES", ((0.3, None), (0.3, 1)))
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
    assert run("info", "run") == 0 and metrics["tried"] in capsys.readouterr().out


LABEL = "--target label --task classification"
REFUSED: list[tuple[str | dict[str, Any], str, str]] = [
    ("regression", "", "--target is missing"),
    ("three classes", f"{LABEL} --likelihood warped", "--likelihood is for --task regression"),
    (
        {"a": range(40), "y": [float(row == 7) for row in range(40)]},
        "--target y --seed 6",
        "the 36 training rows hold one value only of 'y'",
    ),
    (
        {"a": range(40), "label": ["x", "x", *(["y", "z"] * 19)]},
        f"{LABEL} --test-fraction 0.9",
        "the 4 training rows hold 2 of the classes only of 'label'",
    ),
]
REFUSED += [
    ("regression", f"--target price {options}", message)
    for options, message in (
        ("--kernel Linear", "Invalid value .Linear. for --kernel. Choose from"),
        ("--model GP", "Invalid value .GP. for --model.*is a DWP with --depth 1"),
        ("--model DGP --depth auto", "--depth auto is for --model DWP: give the --depth of a DGP"),
        ("--effort quick --depth 2", "--effort is for --depth auto"),
        ("--effort quick --model DGP", "--effort is for --depth auto"),
        ("--depth 0", "--depth must be a positive integer, or auto, got 0"),
        ("--num-inducing 2000000000", "--num-inducing. Must be <= 1000000"),
        ("--seed -1", "--seed"),
        ("--out file", "--out file is there already: choose another, or remove it"),
        ("--out table.csv/run", "table.csv/run"),
    )
]


@pytest.mark.parametrize(("table", "options", "message"), REFUSED)
def test_refuses(
    refused: Callable[..., str], table: str | dict[str, Any], options: str, message: str
) -> None:
    path = write_csv(Path("table.csv"), columns(table) if isinstance(table, str) else table)
    Path("file").touch()
    assert re.search(message, refused("fit", path, *options.split()))


@pytest.mark.parametrize("option", ["--impute", "--missing ?", "--target y"])
def test_what_is_said_of_a_table_needs_one(refused: Callable[..., str], option: str) -> None:
    """Catches options that go unheard."""
    assert f"{option.split()[0]} belongs to a table of yours" in refused("fit", *option.split())
