"""The benchmark command, without timing anything that takes time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run

from gpflow_dwp.cli import benchmark


def test_the_floor_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", "step", "--shapes", "yacht-2", "--show-floor") == 0

    output, _ = capsys.readouterr()
    assert "1  potrf  100 x 100 x 100     layer 1: L = chol K" in output
    assert "10  gemm   100 x 100 x 277     output: Φ C" in output


def test_figures_are_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = {"name": "AB / GW", "value": 1.04, "spread": 0.01, "at_most": 1.05}
    asked: dict[str, Any] = {}

    def measured(shapes: list[str], models: list[str], dtypes: list[str], **others: Any) -> Any:
        asked.update(shapes=shapes, dtypes=dtypes, **others)
        return {"yacht-5": {"figures": [figure], "timings": {}}}

    monkeypatch.setattr(benchmark, "benchmark_step", measured)
    file = tmp_path / "step.json"

    code = run("benchmark", "step", "--shapes", "yacht-5", "--turns", "2", "--out", str(file))

    assert code == 0
    assert asked["shapes"] == ["yacht-5"] and asked["turns"] == 2 and asked["threads"] == 1
    assert "AB / GW    1.040   0.010  1.05" in capsys.readouterr().out
    kept = json.loads(file.read_text())
    assert kept["yacht-5"]["figures"] == [figure]
    assert kept["provenance"]["threads"] == 1

    assert run("benchmark", "step", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["yacht-5"] == kept["yacht-5"]


def test_an_unknown_shape_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark", "step", "--shapes", "huge") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
