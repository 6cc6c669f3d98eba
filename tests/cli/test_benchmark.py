"""The benchmark command, without timing anything that takes time."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run

from gpflow_dwp.data import UCISplit
from gpflow_dwp.lab.benchmarks import ESTIMATORS, Figure, GroupVariance
from gpflow_dwp.models import DeepWishartProcess


def test_the_floor_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", "step", "--shapes", "yacht-2", "--show-floor") == 0

    output, _ = capsys.readouterr()
    assert "1  potrf  100 x 100 x 100     layer 1: L = chol K" in output
    assert "10  gemm   100 x 100 x 277     output: V = R C" in output


def test_the_floor_of_each_family_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["benchmark", "step", "--shapes", "yacht-2", "--show-floor", "--models"]
    assert run(*arguments, "A-whitened", "GW", "DGP", "--json") == 0

    listed = json.loads(capsys.readouterr().out)["yacht-2"]

    assert list(listed) == ["A-whitened", "GW"]
    assert len(listed["A-whitened"]) < len(listed["GW"])
    assert run(*arguments, "DGP") == 2
    assert "--models must name one of GW, A, AB, A-whitened" in capsys.readouterr().err


def test_figures_are_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = {"name": "AB / GW", "value": 1.04, "spread": 0.01, "at_most": 1.05}
    asked: dict[str, Any] = {}

    def measured(shapes: list[str], models: list[str], dtypes: list[str], **others: Any) -> Any:
        asked.update(shapes=shapes, dtypes=dtypes, **others)
        return {"yacht-5": {"figures": [figure], "timings": {}}}

    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_step", measured)
    file = tmp_path / "step.json"

    code = run("benchmark", "step", "--shapes", "yacht-5", "--turns", "2", "--json", str(file))

    assert code == 0
    assert asked["shapes"] == ("yacht-5",) and asked["turns"] == 2 and asked["threads"] == 1
    assert "AB / GW    1.040   0.010  1.05" in capsys.readouterr().out
    kept = json.loads(file.read_text())
    assert kept["yacht-5"]["figures"] == [figure]
    assert kept["provenance"]["threads"] == 1


def test_a_bound_and_its_run_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = {"name": "time to the bound, fast / papers", "value": 0.09, "spread": 0.0}
    asked: list[Any] = []

    def measured(*, dataset: str, depth: int, model: str, **others: Any) -> Any:
        run = (dataset, depth, model)
        asked.append((run, others["level"], others["num_steps"], others["uci_folder"]))
        return {"A of depth 2 on boston": {"figures": [figure | {"at_most": 0.1}], "runs": {}}}

    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_bound", measured)
    options = ["--level", "-0.34", "--num-steps", "1500", "--uci-folder", str(tmp_path)]

    assert run("benchmark", "bound", "--dataset", "boston", *options) == 0

    assert asked == [(("boston", 2, "A"), -0.34, 1_500, tmp_path)]
    assert "fast / papers    0.090   0.000  0.1" in capsys.readouterr().out


def test_json_alone_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure("import", 1.0, 0.1, 0.3)
    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_import", lambda *_, **__: [figure])

    assert run("benchmark", "import", "--json") == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["import"]["figures"] == [figure._asdict()]


def test_a_file_that_cannot_be_written_costs_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("benchmark", "import", "--json", str(tmp_path)) == 2
    assert "is a directory, not a file" in capsys.readouterr().err


def test_an_unknown_shape_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", "step", "--shapes", "huge") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_growth_is_printed_kept_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figure = {"name": "exponent of N, two largest", "value": 0.9, "spread": 0.1, "at_most": 1.0}
    measured = {
        "figures": [figure, figure, figure],
        "values": [1, 2],
        "timings": {
            "N = 1": {"processor_seconds": [1.0]},
            "N = 2": {"processor_seconds": [2.0]},
        },
    }
    asked: dict[str, Any] = {}

    def scaled(axes: list[str], model: str, dtype: str, **others: Any) -> Any:
        asked.update(axes=axes, model=model, dtype=dtype, **others)
        return {"N": measured}

    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_scale", scaled)
    drawn, kept = tmp_path / "scale.svg", tmp_path / "scale.json"

    code = run("benchmark", "scale", "--axes", "N", "--figure", str(drawn), "--json", str(kept))

    assert code == 0
    assert asked["axes"] == ("N",) and asked["model"] == "AB" and asked["dtype"] == "float64"
    assert "exponent of N, two largest    0.900   0.100  1" in capsys.readouterr().out
    assert json.loads(kept.read_text())["N"] == measured
    assert "</svg>" in drawn.read_text()


@pytest.mark.parametrize("file", ["scale.xyz", "nowhere/scale.png"])
def test_a_figure_that_cannot_be_written_costs_no_time(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("benchmark", "scale", "--figure", file) == 2
    assert "--figure" in capsys.readouterr().err


@pytest.mark.parametrize(
    "what", ["step", "predict", "scale", "memory", "variance", "bound", "precision", "import"]
)
def test_help_does_not_fail(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", what, "--help") == 0
    assert "--quiet" in capsys.readouterr().out


def test_precision_is_measured_as_it_was_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def measured(dataset: str, depth: int, model: str, **others: Any) -> dict[str, Any]:
        asked.update(others, run=(dataset, depth, model))
        return {"AB of depth 5": {"figures": [Figure("lost", 0.1234, 0.01, 0.05)._asdict()]}}

    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_precision", measured)

    code = run("benchmark", "precision", "--model", "AB", "--num-draws", "7", "--num-steps", "9")

    assert code == 0
    assert asked["run"] == ("yacht", 5, "AB")
    assert (asked["num_draws"], asked["num_steps"], asked["dtype"]) == (7, 9, "float32")
    assert "lost             0.123   0.010  0.05" in capsys.readouterr().out


def test_an_unknown_data_set_is_refused_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", "variance", "--dataset", "iris") != 0

    assert "--dataset must be one of" in capsys.readouterr().err


def test_variances_are_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def measured(model: DeepWishartProcess, data: Any, **others: Any) -> list[dict[str, Any]]:
        asked.update(others, depth=len(model.layers), rows=len(data[0]))
        variances = {"kernels": GroupVariance(12.345678, 1.0), "likelihood": GroupVariance(2, 0)}
        return [
            {"step": step, "estimator": name, "num_samples": 5, "variances": variances}
            for step in (0, 40)
            for name in ESTIMATORS
        ]

    X = np.random.default_rng(0).normal(size=(9, 2))
    split = UCISplit("yacht", 0, X, X[:, :1] ** 2, X[:1], X[:1, :1] ** 2)
    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.benchmark_variance", measured)
    monkeypatch.setattr("gpflow_dwp.data.load_uci", lambda *_, **__: split)
    file = tmp_path / "variance.csv"

    code = run("benchmark", "variance", "--num-samples", "5", "--num-steps", "40", "--out", file)

    assert code == 0
    assert asked["num_samples"] == (5,) and asked["num_steps"] == 40
    printed = capsys.readouterr().out
    assert "variance of the gradient, in nats², step 0, S = 5" in printed
    assert "step 40, S = 5" in printed and "12.3" in printed
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(row["step"], row["estimator"]) for row in rows] == [
        (step, name) for step in ("0", "40") for name in ESTIMATORS
    ]
    assert rows[0]["kernels"] == "12.35" and rows[0]["kernels, standard error"] == "1"
    assert rows[0]["dataset"] == "yacht" and "tensorflow" in rows[0]["versions"]
