"""The time of imports, without importing anything."""

from __future__ import annotations

import pytest

from gpflow_dwp.lab.benchmarks import benchmark_import, import_time


def test_imports_are_compared_turn_by_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([(4.0, 2.0), (4.5, 2.1), (8.0, 2.0), (8.1, 2.3), (4.0, 2.0), (4.2, 2.2)])
    monkeypatch.setattr(import_time, "_time_import", lambda package: next(times))
    lines: list[str] = []

    figures = {figure.name: figure for figure in benchmark_import(3, report=lines.append)}

    assert lines == ["turn 1 of 3", "turn 2 of 3", "turn 3 of 3"]
    assert figures["import gpflow, s"].value == 4.0
    over, over_processor = (
        figures[f"gpflow_dwp over gpflow, {unit}"] for unit in ("s", "s of processor")
    )
    assert over.value == pytest.approx(0.2) and over_processor.value == pytest.approx(0.2)
    assert over.at_most == over_processor.at_most == 0.3


def test_no_turns() -> None:
    with pytest.raises(ValueError, match="turns must be at least 1, got 0"):
        benchmark_import(0)
