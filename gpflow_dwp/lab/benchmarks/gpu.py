"""What a training step takes on a GPU and on the CPU."""

from __future__ import annotations

from gpflow_dwp.lab.benchmarks.measurement import (
    Figure,
    Measured,
    Report,
    Subject,
    measure,
    ratio,
    summary,
)
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, DtypeName, ModelName, ShapeName
from gpflow_dwp.lab.benchmarks.subjects import prepare_step

__all__ = ["benchmark_gpu"]

_PLACES = {"GPU": ("GPU:0", False), "GPU with XLA": ("GPU:0", True), "CPU": ("CPU:0", False)}


def benchmark_gpu(
    *,
    shapes: tuple[ShapeName, ...] = ("yacht-2", "protein-5", "large-3", "larger-3"),
    model: ModelName = "AB",
    dtype: DtypeName = "float64",
    turns: int = 5,
    threads: int = 8,
    report: Report,
) -> dict[str, Measured]:
    """Time a training step on a GPU, compiled with XLA or not, and on the CPU.

    :param threads: Of the step on the CPU.
    """
    result: dict[str, Measured] = {}
    for name in shapes:
        report(f"{name}:")
        subjects = [
            Subject(title, prepare_step, (model, SHAPES[name], dtype, "pseudo_targets", *place))
            for title, place in _PLACES.items()
        ]
        timings = measure(subjects, turns=turns, threads=threads, report=report)
        seconds = {title: timing.seconds for title, timing in timings.items()}
        figures = [
            *(ratio(f"{on} / CPU", seconds[on], seconds["CPU"]) for on in seconds if on != "CPU"),
            *(summary(f"{title}, ms", times, unit=1e-3) for title, times in seconds.items()),
            *(Figure(f"{title}, first step, s", t.first_step) for title, t in timings.items()),
        ]
        result[name] = Measured(figures, {"timings": timings})
    return result
