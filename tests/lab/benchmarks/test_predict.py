"""The benchmark of predictions, without timing any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpflow_dwp.lab.benchmarks import predict
from gpflow_dwp.lab.benchmarks.measurement import Subject, Timings
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, Shape


def test_every_figure_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "yacht-2", Shape(8, 2, 4, 2, 2))

    def measured(subjects: Sequence[Subject], **_: Any) -> dict[str, Timings]:
        assert {subject.arguments[1].num_samples for subject in subjects} == {3}
        return {
            s.title: Timings([0.5 if s.title.startswith("floor") else 2.0], [], 1.0)
            for s in subjects
        }

    monkeypatch.setattr(predict, "measure", measured)

    measured_at = predict.benchmark_predict(
        shapes=("yacht-2",), models=("AB",), num_samples=3, report=lambda text: None
    )["yacht-2"]

    figures = {figure.name: figure.value for figure in measured_at.figures}
    names = {f"AB {task} float64" for task in ("predict_f", "predict_y", "draws and predict_y")}
    assert set(figures) == {
        *(f"{name}, {unit}" for name in names for unit in ("ms", "rows/ms")),
        "AB predict_f float64 / floor",
        "floor float64, ms",
    }
    assert figures["AB predict_f float64, ms"] == 2_000.0
    assert figures["AB predict_f float64, rows/ms"] == 0.004
    assert figures["AB predict_f float64 / floor"] == 4.0
    assert set(measured_at.values["timings"]) == {*names, "floor float64"}
