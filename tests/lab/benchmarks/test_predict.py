"""The benchmark of predictions, at a size that takes no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from gpflow_dwp.lab.benchmarks import (
    SHAPES,
    Shape,
    Subject,
    Task,
    Timings,
    benchmark_predict,
    predict,
    prediction_operations,
    prepare,
)


def test_every_figure_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", Shape(8, 2, 4, 2, 2))
    asked: list[str] = []

    def measured(subjects: Sequence[Subject], **_: Any) -> list[Timings]:
        asked.extend(map(str, subjects))
        assert {subject.shape.num_samples for subject in subjects} == {3}
        return [Timings([0.5 if subject.floor else 2.0], [], 1.0) for subject in subjects]

    monkeypatch.setattr(predict, "measure", measured)

    result = benchmark_predict(["tiny"], ["AB"], num_samples=3)

    figures = {figure["name"]: figure["value"] for figure in result["tiny"]["figures"]}
    names = {f"AB {task} float64" for task in ("predict_f", "predict_y", "draws and predict_y")}
    assert set(figures) == {
        *(f"{name}, {unit}" for name in names for unit in ("ms", "rows/ms")),
        "AB predict_f float64 / floor",
        "floor float64, ms",
    }
    assert figures["AB predict_f float64, ms"] == 2_000.0
    assert figures["AB predict_f float64, rows/ms"] == 0.004
    assert figures["AB predict_f float64 / floor"] == 4.0
    assert set(result["tiny"]["timings"]) == {*names, "floor float64"}
    assert asked == [
        "AB floor of predict_f float64",
        "AB predict_f float64",
        "AB predict_y float64",
        "AB draw_predict_y float64",
    ]


@pytest.mark.parametrize("task", get_args(Task))
@pytest.mark.parametrize(("model", "floor"), [("A-whitened", True), ("A-whitened", False)])
def test_every_task_can_be_done(task: Task, model: str, floor: bool) -> None:
    prepare(Subject(model, Shape(8, 2, 4, 2, 2), "float64", floor, task))(2)


def test_operations_are_those_of_rows_alone() -> None:
    shape = Shape(num_data=50, num_inputs=3, num_inducing=20, num_samples=4, depth=3)

    operations = prediction_operations(shape)

    assert all(operation.columns == 50 for operation in operations)
    counts = {operation.name: operation.times for operation in operations}
    assert counts["layer 1: V = L⁻¹ C"] == 1 and counts["layer 2: V = L⁻¹ C"] == 4
    assert counts["output: V = R C"] == 4
    (output,) = prediction_operations(shape._replace(depth=1))
    assert output.times == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shapes": ["huge"]}, r"shapes must be some of yacht-2, .*, got \['huge'\]"),
        ({"models": []}, r"models must be some of GW, .*, got \[\]"),
        ({"num_samples": 0}, "num_samples must be a positive integer, got 0"),
        ({"turns": 0}, "turns must be a positive integer, got 0"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark_predict(**{"shapes": ["yacht-2"], **arguments})
