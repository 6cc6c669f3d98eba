"""How much faster a training step is on several devices."""

from __future__ import annotations

from gpflow_dwp.lab.benchmarks.measurement import (
    Figure,
    Measured,
    Report,
    Subject,
    measure,
    ratio,
    start,
    summary,
)
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, DtypeName, ModelName, ShapeName
from gpflow_dwp.lab.benchmarks.subjects import prepare_distributed_step

__all__ = ["benchmark_devices"]


def benchmark_devices(
    *,
    shapes: tuple[ShapeName, ...] = ("yacht-2", "protein-5"),
    model: ModelName = "AB",
    dtype: DtypeName = "float64",
    devices: int = 2,
    turns: int = 7,
    report: Report,
) -> dict[str, Measured]:
    """Time a training step that is divided among several devices, over one on a single device.

    Devices are GPUs where there are so many, else parts of the CPU with a thread each. By rows a
    step has the draws of the single device; by samples each device has as many, for a gradient of
    less noise.

    :param devices: How many.
    """
    result: dict[str, Measured] = {}
    for name in shapes:
        alone, rows, samples = (
            Subject(title, prepare_distributed_step, (model, SHAPES[name], dtype, number, split))
            for title, number, split in (
                ("one device", 1, "rows"),
                (f"{devices} devices, rows", devices, "rows"),
                (f"{devices} devices, samples", devices, "samples"),
            )
        )
        with start(rows) as process:
            told = process.ask()["value"]
        report(f"{name}, on {', '.join(told['devices'])}:")
        timings = measure([alone, rows, samples], turns=turns, threads=1, report=report)
        seconds = {title: timing.seconds for title, timing in timings.items()}
        figures = [
            *(
                ratio(f"{each.title} / one device", seconds[each.title], seconds[alone.title])
                for each in (rows, samples)
            ),
            *(summary(f"{title}, ms", times, unit=1e-3) for title, times in seconds.items()),
            Figure("gradients to average, MB", 1e-6 * told["gradient_bytes"]),
        ]
        result[name] = Measured(figures, {"devices": told["devices"], "timings": timings})
    return result
