"""How the time of a training step grows with the sizes of model and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from gpflow_dwp.lab.benchmarks.measurement import (
    Figure,
    Measured,
    Report,
    Subject,
    measure,
    summary,
)
from gpflow_dwp.lab.benchmarks.shapes import DtypeName, ModelName, Shape
from gpflow_dwp.lab.benchmarks.subjects import prepare_step

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["GRIDS", "Grid", "benchmark_scale", "exponents"]

AxisName = Literal["N", "S", "depth", "M"]


class Grid(NamedTuple):
    """Sizes along one axis, all else held.

    :param base: The sizes that are held.
    :param field: Which of them changes.
    :param values: What it takes, ascending; at least three.
    :param at_most: What the exponent of growth is meant to be at most.
    """

    base: Shape
    field: str
    values: tuple[int, ...]
    at_most: float

    def shapes(self) -> list[Shape]:
        """Return the shape of each value."""
        return [self.base._replace(**{self.field: value}) for value in self.values]


GRIDS = {
    "N": Grid(Shape(0, 6, 100, 5, 3), "num_data", (500, 1_000, 2_000, 4_000, 8_000), 1.0),
    "S": Grid(Shape(500, 6, 100, 0, 3), "num_samples", (2, 4, 8, 16, 32), 1.0),
    "depth": Grid(Shape(500, 6, 100, 5, 0), "depth", (2, 4, 8, 12), 1.0),
    "M": Grid(Shape(1_000, 6, 0, 2, 3), "num_inducing", (50, 100, 200, 400, 800), 3.0),
}
"""For each axis, sizes around those of the papers: rows, draws, layers and inducing points."""


def benchmark_scale(
    *,
    axes: tuple[AxisName, ...] = ("N", "S", "depth", "M"),
    model: ModelName = "AB",
    dtype: DtypeName = "float64",
    turns: int = 7,
    threads: int = 1,
    report: Report,
) -> dict[str, Measured]:
    """Tell how the time of a step grows with rows, draws, depth and inducing points: exponents.

    They are of processor time: over all sizes, over the two largest, and that of the growth beyond
    the smallest, which is 1 for any a + b x. The aim is for this one.

    :param axes: What grows, one after the other.
    """
    result: dict[str, Measured] = {}
    for axis in axes:
        grid = GRIDS[axis]
        report(f"{axis} = {', '.join(map(str, grid.values))}:")
        subjects = [
            Subject(f"{axis} = {value}", prepare_step, (model, shape, dtype))
            for value, shape in zip(grid.values, grid.shapes(), strict=True)
        ]
        timings = measure(subjects, turns=turns, threads=threads, report=report)
        held = {field: size for field, size in grid.base._asdict().items() if field != grid.field}
        seconds = [timing.processor_seconds for timing in timings.values()]
        values = {"values": list(grid.values), "held": held, "timings": timings}
        result[axis] = Measured(_figures(axis, grid, seconds), values)
    return result


def exponents(values: npt.ArrayLike, seconds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Fit c in seconds ~ valueᶜ by least squares of logarithms, in each turn.

    :param values: Sizes, [V].
    :param seconds: Times at each size, [V, T].
    :return: c of each turn, [T]; NaN where a time is not positive.
    """
    import numpy as np

    logarithms = np.log(np.asarray(values, float))
    deviations = logarithms - logarithms.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        return deviations @ np.log(np.asarray(seconds)) / np.sum(deviations**2)


def _figures(axis: str, grid: Grid, times: list[list[float]]) -> list[Figure]:
    import numpy as np

    values, seconds = np.array(grid.values, float), np.array(times)
    # c in t(x) - t(x_0) ~ (x - x_0)ᶜ for the two largest sizes x and the smallest, x_0.
    growth = exponents(values[-2:] - values[0], seconds[-2:] - seconds[0])
    return [
        summary(f"exponent of {axis}, all sizes", exponents(values, seconds)),
        summary(f"exponent of {axis}, two largest", exponents(values[-2:], seconds[-2:])),
        summary(f"exponent of growth beyond {axis} = {grid.values[0]}", growth, grid.at_most),
        *(
            summary(f"{axis} = {value}, processor ms", row, unit=1e-3)
            for value, row in zip(grid.values, times, strict=True)
        ),
    ]
