"""The benchmark commands, without timing anything."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_line import parse, run

from gpflow_dwp.lab.benchmarks import BENCHMARKS
from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured

FIGURE = Figure("AB / GW", 1.04, 0.01, 1.05)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a benchmark was asked for, in whose place something quick is."""
    options: dict[str, Any] = {}

    def measured(**given: Any) -> dict[str, Measured]:
        options.update(given)
        given["report"]("a line of progress")
        return {"yacht-5": Measured([FIGURE, Figure("ms", 2e4, 3.0)], {"timings": {"AB": [1.0]}})}

    import_module(
        "gpflow_dwp.lab.commands.benchmark"
    )  # which declares commands by what they stand for
    for place in BENCHMARKS.values():
        monkeypatch.setattr(f"gpflow_dwp.lab.benchmarks.{place.replace(':', '.')}", measured)
    return options


def test_figures_are_printed_and_every_value_is_kept(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "step.json"

    assert run("benchmark", "step", "--shapes", "yacht-5", "--turns", "2", "--json", file) == 0

    assert asked["shapes"] == ("yacht-5",) and asked["turns"] == 2 and asked["threads"] == 1
    printed, progress = capsys.readouterr()
    assert printed.splitlines()[:3] == [
        "yacht-5      median          +-  at most",
        "AB / GW        1.04        0.01     1.05",
        "ms            2e+04           3",
    ]
    assert progress == "a line of progress\n"
    kept = json.loads(file.read_text())
    assert kept["yacht-5"] == {
        "figures": [FIGURE._asdict(), Figure("ms", 2e4, 3.0)._asdict()],
        "timings": {"AB": [1.0]},
    }
    assert kept["provenance"]["threads"] == 1 and kept["provenance"]["dtype"] == "float64"


@pytest.mark.parametrize("what", BENCHMARKS)
def test_every_benchmark_is_a_command(
    what: str, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("benchmark", what, "--help") == 0
    shown = capsys.readouterr().out
    assert "Show no progress." in shown and "one line of JSON" in shown

    assert run("benchmark", what, "--quiet", "--json") == 0
    output, error = capsys.readouterr()
    assert json.loads(output)["yacht-5"]["figures"][0] == FIGURE._asdict()
    assert output.count("\n") == 1 and error == ""
    assert {"report", *parse("benchmark", what)} - {"quiet", "json"} == {*asked}


def test_types_of_options_are_read(asked: dict[str, Any], tmp_path: Path) -> None:
    """Numbers, lists of them, folders, and what may be negative."""
    options = ["--num-samples", "1", "5", "--uci-folder", str(tmp_path), "--seed", "3"]
    assert run("benchmark", "variance", "--quiet", *options) == 0
    assert (asked["num_samples"], asked["uci_folder"], asked["seed"]) == ((1, 5), tmp_path, 3)

    assert run("benchmark", "bound", "--quiet", "--dataset", "boston", "--level", "-0.34") == 0
    assert (asked["dataset"], asked["level"], asked["num_steps"]) == ("boston", -0.34, 3_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("step --shapes huge", "huge"),
        ("step --turns 0", "--turns: must be a positive integer, got '0'"),
        ("variance --num-samples 5 0", "--num-samples: must be a positive integer, got '0'"),
        ("variance --dataset iris", 'Invalid value "iris" for --dataset'),
        ("memory --models DGP", "DGP"),
        ("scale --axes D", "--axes"),
        ("precision --dtype float16", "float16"),
        ("import --json .", "is a directory, not a file"),
        (f"import --json {__file__}", "test_benchmark.py exists; choose another place"),
        ("step --show-floor --models DGP", "--models must name one of GW, A, AB, A-whitened"),
    ],
)
def test_mistakes_are_one_line(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("benchmark", *arguments.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_the_floor_of_each_family_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["step", "--shapes", "yacht-2", "--show-floor", "--models", "A-whitened", "GW"]

    assert run("benchmark", *arguments, "DGP") == 0
    shown = capsys.readouterr().out
    assert "potrf 100 x 100 x 100: layer 1: L = chol K" in shown
    assert "gemm  100 x 100 x 277: output: V = R C" in shown

    assert run("benchmark", *arguments, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    names = [f"yacht-2, {model}: dense operations of a step" for model in ("A-whitened", "GW")]
    assert list(listed) == ["provenance", *names]
    whitened, others = (listed[name]["operations"] for name in names)
    assert len(whitened) < len(others) and whitened[0]["routine"] == "potrf"
