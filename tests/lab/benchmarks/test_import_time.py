"""The time of imports, without importing anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gpflow_dwp.lab.benchmarks import import_time
from gpflow_dwp.lab.benchmarks.measurement import Subject


def test_imports_are_compared_turn_by_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([(4.0, 2.0), (4.5, 2.1), (8.0, 2.0), (8.1, 2.3), (4.0, 2.0), (4.2, 2.2)])
    lines: list[str] = []

    @contextlib.contextmanager
    def started(subject: Subject) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(
            ask=lambda: dict(zip(("wall", "processor"), next(times), strict=True))
        )

    monkeypatch.setattr(import_time, "start", started)

    measured = import_time.benchmark_import(turns=3, report=lines.append)["import"]

    assert lines == ["turn 1 of 3", "turn 2 of 3", "turn 3 of 3"]
    figures = {figure.name: figure for figure in measured.figures}
    assert figures["import gpflow, s"].value == 4.0
    for unit in ("s", "s of processor"):
        over = figures[f"gpflow_dwp over gpflow, {unit}"]
        assert over.value == pytest.approx(0.2) and over.at_most == 0.3
