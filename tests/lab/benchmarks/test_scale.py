"""Exponents from times, and the benchmark of growth without timing anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks import scale
from gpflow_dwp.lab.benchmarks.measurement import Subject, Timings
from gpflow_dwp.lab.benchmarks.scale import GRIDS, Grid, benchmark_scale, exponents
from gpflow_dwp.lab.benchmarks.shapes import Shape


def test_exponents_of_powers_are_found() -> None:
    values = np.array([50.0, 100.0, 300.0])
    seconds = np.stack([2.0 * values, 0.1 * values**3], axis=1)

    np.testing.assert_allclose(exponents(values, seconds), [1.0, 3.0], rtol=1e-12)


def test_exponents_are_those_of_a_fitted_polynomial() -> None:
    rng = np.random.default_rng(0)
    values, seconds = [1, 2, 5, 7], rng.uniform(1.0, 2.0, size=(4, 3))

    slopes, _ = np.polyfit(np.log(values), np.log(seconds), 1)
    np.testing.assert_allclose(exponents(values, seconds), slopes, rtol=1e-12)


def test_time_that_does_not_grow_has_no_exponent() -> None:
    found = exponents([1.0, 2.0], [[1.0, -1.0], [2.0, 1.0]])

    np.testing.assert_allclose(found, [1.0, np.nan])


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_a_grid_changes_its_axis_alone(grid: Grid) -> None:
    shapes = grid.shapes()

    assert [getattr(shape, grid.field) for shape in shapes] == sorted(grid.values)
    held = {shape._replace(**{grid.field: 0}) for shape in shapes}
    assert len(held) == 1 and min(min(shape) for shape in shapes) > 0
    # The builders take no more inducing points than there are rows.
    assert all(shape.num_inducing <= shape.num_data for shape in shapes)


def test_growth_with_a_part_that_does_not_grow_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(
        subjects: Sequence[Subject], *, report: Callable[[str], None], **_: Any
    ) -> dict[str, Timings]:
        report("measured")
        times = {s.title: 0.5 + 0.1 * s.arguments[1].num_data for s in subjects}
        return {title: Timings([time], [time, time], 1.0) for title, time in times.items()}

    monkeypatch.setattr(scale, "measure", measured)
    tiny = Grid(Shape(0, 2, 4, 2, 2), "num_data", (6, 12, 24), 1.0)
    monkeypatch.setitem(GRIDS, "N", tiny)
    lines: list[str] = []

    found = benchmark_scale(axes=("N",), turns=1, report=lines.append)["N"]

    assert lines == ["N = 6, 12, 24:", "measured"]
    assert [(figure.name, figure.at_most) for figure in found.figures] == [
        ("exponent of N, all sizes", None),
        ("exponent of N, two largest", None),
        ("exponent of growth beyond N = 6", 1.0),
        *((f"N = {size}, processor ms", None) for size in (6, 12, 24)),
    ]
    overall, largest, growth = found.figures[:3]
    assert overall.value < largest.value < 1.0
    assert largest.value == pytest.approx(np.log2(2.9 / 1.7))
    assert growth.value == pytest.approx(1.0) and growth.spread == pytest.approx(0.0)
    assert found.values["values"] == [6, 12, 24]
    assert found.values["held"] == {
        "num_inputs": 2,
        "num_inducing": 4,
        "num_samples": 2,
        "depth": 2,
    }
    assert found.values["timings"]["N = 6"].seconds == [pytest.approx(1.1)]
