"""How the time of a training step grows with the sizes of model and batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.lab.benchmarks._arguments import DTYPES, check_names
from gpflow_dwp.lab.benchmarks.measurement import Figure, Timings, measure, summary
from gpflow_dwp.lab.benchmarks.shapes import Shape
from gpflow_dwp.lab.benchmarks.subjects import MODELS, Subject
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["GRIDS", "Grid", "benchmark_scale", "exponents"]


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


GRIDS: dict[str, Grid] = {
    "N": Grid(Shape(0, 6, 100, 5, 3), "num_data", (500, 1_000, 2_000, 4_000, 8_000), 1.0),
    "S": Grid(Shape(500, 6, 100, 0, 3), "num_samples", (2, 4, 8, 16, 32), 1.0),
    "depth": Grid(Shape(500, 6, 100, 5, 0), "depth", (2, 4, 8, 12), 1.0),
    "M": Grid(Shape(1_000, 6, 0, 2, 3), "num_inducing", (50, 100, 200, 400, 800), 3.0),
}
"""For each axis, sizes around those of the papers: rows, draws, layers and inducing points."""


def benchmark_scale(
    axes: Sequence[str] = tuple(GRIDS),
    model: str = "AB",
    dtype: str = "float64",
    *,
    turns: int = 7,
    threads: int = 1,
    grids: Mapping[str, Grid] = GRIDS,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time training steps at several sizes along each axis, and fit exponents.

    Exponents are those of processor time, which other processes disturb less than wall time. A step
    has parts that do not grow, and a first layer that costs less than the others, so besides the
    exponents of the time itself, over all sizes and over the two largest, there is that of its
    growth: c in t(x) - t(x_0) ~ (x - x_0)ᶜ for the two largest sizes x and the smallest, x_0. It is
    1 for any a + b x. The aim is for this one.

    :param axes: Keys of ``grids``.
    :param model: One of :data:`MODELS`.
    :param dtype: "float64" or "float32".
    :param turns: See :func:`measure`.
    :param threads: See :func:`measure`.
    :param grids: The sizes of each axis.
    :param report: Called with a line of progress.
    :return: For each axis, under "figures" a list of :class:`Figure` as dictionaries, under
        "values" the sizes, under "held" the others, and under "timings" what was measured at each
        size, in seconds.
    :raises ValueError: If a name is unknown, or a count is not a positive integer.
    """
    check_names("axes", axes, tuple(grids))
    check_choice(MODELS, model=model)
    check_choice(DTYPES, dtype=dtype)
    check_integers(turns=turns, threads=threads)
    result = {}
    for axis in axes:
        grid = grids[axis]
        report(f"{axis} = {', '.join(map(str, grid.values))}:")
        subjects = [Subject(model, shape, dtype) for shape in grid.shapes()]
        timings = measure(subjects, turns=turns, threads=threads, report=report)
        held = {field: value for field, value in grid.base._asdict().items() if field != grid.field}
        result[axis] = {
            "figures": [figure._asdict() for figure in _figures(axis, grid, timings)],
            "values": list(grid.values),
            "held": held,
            "timings": {
                f"{axis} = {value}": timing._asdict()
                for value, timing in zip(grid.values, timings, strict=True)
            },
        }
    return result


def exponents(
    values: npt.ArrayLike, seconds: Sequence[Sequence[float]] | npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Fit c in seconds ~ valueᶜ by least squares of logarithms, in each turn.

    :param values: Sizes, [V].
    :param seconds: Times at each size, [V, T].
    :return: c of each turn, [T]; NaN where a time is not positive.
    """
    logarithms = np.log(np.asarray(values, float))
    deviations = logarithms - logarithms.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        return deviations @ np.log(np.asarray(seconds)) / np.sum(deviations**2)


def _figures(axis: str, grid: Grid, timings: Sequence[Timings]) -> list[Figure]:
    seconds = np.array([timing.processor_seconds for timing in timings])
    values = np.array(grid.values, float)
    growth = exponents(values[-2:] - values[0], seconds[-2:] - seconds[0])
    return [
        summary(f"exponent of {axis}, all sizes", exponents(values, seconds)),
        summary(f"exponent of {axis}, two largest", exponents(values[-2:], seconds[-2:])),
        summary(f"exponent of growth beyond {axis} = {grid.values[0]}", growth, grid.at_most),
        *(
            summary(f"{axis} = {value}, processor ms", 1e3 * row)
            for value, row in zip(grid.values, seconds, strict=True)
        ),
    ]
