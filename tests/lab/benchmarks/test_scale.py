"""Exponents from times, and the benchmark of growth at sizes that take no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks import (
    GRIDS,
    Grid,
    Shape,
    Subject,
    Timings,
    benchmark_scale,
    exponents,
    scale,
)

TINY = {"N": Grid(Shape(0, 2, 4, 2, 2), "num_data", (6, 12, 24), 1.0)}


def test_exponents_of_powers_are_found() -> None:
    values = np.array([50.0, 100.0, 300.0])
    seconds = np.stack([2.0 * values, 0.1 * values**3], axis=1)

    np.testing.assert_allclose(exponents(values, seconds), [1.0, 3.0], rtol=1e-12)


def test_exponents_are_those_of_a_fitted_polynomial() -> None:
    rng = np.random.default_rng(0)
    values, seconds = [1, 2, 5, 7], rng.uniform(1.0, 2.0, size=(4, 3))

    slopes, _ = np.polyfit(np.log(values), np.log(seconds), 1)
    np.testing.assert_allclose(exponents(values, seconds), slopes, rtol=1e-12)


@pytest.mark.parametrize(("axis", "grid"), GRIDS.items())
def test_a_grid_changes_its_axis_alone(axis: str, grid: Grid) -> None:
    shapes = grid.shapes()

    assert [getattr(shape, grid.field) for shape in shapes] == sorted(grid.values)
    held = {shape._replace(**{grid.field: 0}) for shape in shapes}
    assert len(held) == 1 and min(min(shape) for shape in shapes) > 0
    # The builders take no more inducing points than there are rows.
    assert all(shape.num_inducing <= shape.num_data for shape in shapes)


@pytest.fixture
def linear_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(
        subjects: Sequence[Subject], *, report: Callable[[str], None], **_: Any
    ) -> list[Timings]:
        report("measured")
        times = [0.5 + 0.1 * subject.shape.num_data for subject in subjects]
        return [Timings([time], [time, 2.0 * time], 1.0) for time in times]

    monkeypatch.setattr(scale, "measure", measured)


@pytest.mark.usefixtures("linear_times")
def test_every_figure_is_there() -> None:
    lines: list[str] = []

    measured = benchmark_scale(["N"], turns=1, grids=TINY, report=lines.append)["N"]

    assert lines == ["N = 6, 12, 24:", "measured"]
    assert [figure["name"] for figure in measured["figures"]] == [
        "exponent of N, all sizes",
        "exponent of N, two largest",
        "exponent of growth beyond N = 6",
        "N = 6, processor ms",
        "N = 12, processor ms",
        "N = 24, processor ms",
    ]
    assert [figure["at_most"] for figure in measured["figures"][:3]] == [None, None, 1.0]
    assert measured["values"] == [6, 12, 24]
    assert measured["held"] == {"num_inputs": 2, "num_inducing": 4, "num_samples": 2, "depth": 2}
    assert measured["timings"]["N = 6"]["seconds"] == [pytest.approx(1.1)]


@pytest.mark.usefixtures("linear_times")
def test_growth_with_a_part_that_does_not_grow_is_linear() -> None:
    figures = benchmark_scale(["N"], grids=TINY)["N"]["figures"]

    overall, largest, growth = figures[:3]
    assert overall["value"] < largest["value"] < 1.0
    assert largest["value"] == pytest.approx(np.log2(2.9 / 1.7))
    assert growth["value"] == pytest.approx(1.0) and growth["spread"] == pytest.approx(0.0)


def test_time_that_does_not_grow_has_no_exponent() -> None:
    found = exponents([1.0, 2.0], [[1.0, -1.0], [2.0, 1.0]])

    np.testing.assert_allclose(found, [1.0, np.nan])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axes": ["D"]}, r"axes must be some of N, S, depth, M, got \['D'\]"),
        ({"axes": []}, r"axes must be some of N, S, depth, M, got \[\]"),
        ({"model": "SVGP"}, "model must be one of GW, A, AB, A-whitened, DGP, got 'SVGP'"),
        ({"dtype": "float16"}, "dtype must be one of float64, float32, got 'float16'"),
        ({"turns": 0}, "turns must be a positive integer, got 0"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark_scale(**arguments)
