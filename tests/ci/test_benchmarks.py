"""Benchmarks: what is counted, how it is timed, and what is said of it."""

from __future__ import annotations

import csv
from pathlib import Path

import benchmark
import numpy as np
import pytest
from benchmarks.bound import BoundWatch
from benchmarks.floor import Floor, Operation, floor_operations, tensorflow_floor
from benchmarks.measuring import Timings
from benchmarks.models import SHAPES, Shape, prepare_step

from gpflow_dwp.training import TrainingProgress

SHAPE = Shape(num_data=50, num_inputs=3, num_inducing=20, num_samples=4, depth=3)


def flops(operations: list[Operation]) -> float:
    """Multiplications and additions: of a product 2 a b c, of a solve half, of a factor a sixth."""
    parts = {"gemm": 2.0, "trsm": 1.0, "potrf": 1.0 / 3.0}
    return sum(parts[o.routine] * o.rows * o.inner * o.columns * o.times for o in operations)


def test_the_floor_has_the_operations_of_the_formulas() -> None:
    """One covariance for all draws in the first layer; whitening saves those of the scale."""
    counts = {o.name: o.times for o in floor_operations(SHAPE, "AB")}
    assert counts["layer 1: L = chol K"] == 1 and counts["layer 2: L = chol K"] == 4
    assert counts["layer 1: mean and its gradients"] == 12
    whitened = {o.name for o in floor_operations(SHAPE, "A-whitened")}
    assert whitened < set(counts) and not any("Σ" in name for name in whitened)
    for field in ("num_data", "num_samples", "depth"):
        values = [
            flops(floor_operations(SHAPES["yacht-5"]._replace(**{field: size}), "AB"))
            for size in (10, 20, 30)
        ]
        np.testing.assert_allclose(values[2] - values[1], values[1] - values[0], rtol=1e-12)
    with np.errstate(all="raise"):
        Floor(floor_operations(SHAPE, "AB"), SHAPE.num_samples, "float32").run(3)
        tensorflow_floor(floor_operations(SHAPE, "AB"), "float32")(3)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("model", ["AB", "DGP"])
def test_a_step_is_taken(model: str) -> None:
    prepare_step(model, [12, 2, 4, 2, 2], "float64")(2)


def test_ratios_are_taken_turn_by_turn(tmp_path: Path) -> None:
    """Not of medians, which belong to different turns where the machine is busy."""
    timings = {
        "AB step float64": Timings([0.1, 0.4, 0.9], [], 2.0),
        "AB floor float64": Timings([0.1, 0.2, 0.3], [], 0.1),
    }
    figures = benchmark.step_figures(timings, ["float64"])
    ratio = next(figure for figure in figures if "/" in figure.name)
    assert ratio[1:] == pytest.approx((2.0, 0.5, 1.4))
    for _ in range(2):
        benchmark.show("step", "yacht-2", figures, tmp_path / "b.csv")
    rows = list(csv.DictReader((tmp_path / "b.csv").read_text().splitlines()))
    assert len(rows) == 2 * len(figures) and float(rows[0]["value"]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ([-3.0, -0.5, -2.0, -0.5, -0.4, -0.9], 200),
        ([-0.5, -0.4, -0.3], 50),
    ],
)
def test_the_bound_stays_above_from_the_last_passing_on(bounds: list[float], step: int) -> None:
    watch = BoundWatch(-1.0, 100, num_data=10)
    ends = [
        watch(TrainingProgress(50 * index, 500, 10.0 * bound, model=None, seconds=0.0))
        for index, bound in enumerate(bounds, start=1)
    ]
    assert watch.run.step == step and watch.run.seconds is not None
    assert ends[-1] == (50 * len(bounds) - step >= 100)
