"""The benchmark of a step, at a size that takes no time."""

from __future__ import annotations

from typing import Any

import pytest

from gpflow_dwp.lab.benchmarks import SHAPES, Shape, benchmark_step


def test_every_figure_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", Shape(8, 2, 4, 2, 2))
    lines: list[str] = []

    result = benchmark_step(["tiny"], ["AB"], turns=1, report=lines.append)

    figures = {figure["name"]: figure for figure in result["tiny"]["figures"]}
    assert set(figures) == {
        "AB step float64 / AB floor float64",
        "AB step float64, ms",
        "AB floor float64, ms",
        "AB step float64, first step, s",
    }
    assert all(figure["value"] > 0.0 for figure in figures.values())
    timings = result["tiny"]["timings"]
    assert len(timings["AB step float64"]["seconds"]) == 1
    assert lines[0] == "tiny:" and lines[-1] == "turn 1 of 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shapes": ["huge"]}, r"shapes must be some of yacht-2, .*, got \['huge'\]"),
        ({"models": []}, r"models must be some of GW, .*, got \[\]"),
        ({"dtypes": ["float16"]}, r"dtypes must be some of float64, float32, got \['float16'\]"),
        ({"turns": 0}, "turns must be a positive integer, got 0"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark_step(**{"shapes": ["yacht-2"], **arguments})
