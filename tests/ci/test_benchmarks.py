"""Benchmarks: what is counted, how it is timed, and what is said of it."""

from __future__ import annotations

import csv
import importlib
import runpy
from pathlib import Path

import benchmark
import numpy as np
import pytest
from benchmarks import peers
from benchmarks.bound import BoundRun, BoundWatch
from benchmarks.floor import Floor, Operation, floor_operations
from benchmarks.measuring import Subject, Timings, measure
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


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("model", ["AB", "DGP"])
def test_a_step_is_taken(model: str) -> None:
    prepare_step(model, [12, 2, 4, 2, 2], "float64")(2)


@pytest.mark.parametrize("peer", ["gpflow", "gpflux", "gpytorch"])
def test_a_peer_takes_steps(peer: str) -> None:
    try:
        importlib.import_module(peer)
    except ImportError:
        pytest.skip(f"needs {peer}")
    getattr(peers, f"prepare_{peer}")([12, 2, 4, 2, 2], "float64")(2)


def test_subjects_take_turns_in_processes_of_their_own(tmp_path: Path) -> None:
    """And one that ends says why."""
    (tmp_path / "things.py").write_text(
        "def prepare(start):\n    return lambda times: sum(range(start, start + 1000 * times))\n\n"
        "def prepare_none():\n    raise ValueError('no such thing')\n"
    )
    things = runpy.run_path(str(tmp_path / "things.py"))
    subjects = [Subject(name, things["prepare"], (5,)) for name in ("a", "b")]
    timings = measure(subjects, turns=2, threads=1)
    assert {name: len(found.seconds) for name, found in timings.items()} == {"a": 2, "b": 2}
    assert all(value > 0.0 for found in timings.values() for value in found.seconds)
    with pytest.raises(RuntimeError, match="no such thing"):
        measure([Subject("c", things["prepare_none"], ())], turns=1, threads=1)


def test_ratios_are_taken_turn_by_turn(tmp_path: Path) -> None:
    """Not of medians, which belong to different turns where the machine is busy."""
    timings = {
        "AB step float64": Timings([0.1, 0.4, 0.9], [], 2.0),
        "AB floor float64": Timings([0.1, 0.2, 0.3], [], 0.1),
    }
    figures = benchmark.step_figures(timings, ["float64"])
    ratio = next(figure for figure in figures if "/" in figure.name)
    assert ratio[1:] == pytest.approx((2.0, 0.5, 1.5))
    for _ in range(2):
        benchmark.show("step", "yacht-2", figures, tmp_path / "b.csv")
    rows = list(csv.DictReader((tmp_path / "b.csv").read_text().splitlines()))
    assert len(rows) == 2 * len(figures) and float(rows[0]["value"]) == pytest.approx(2.0)


def test_exponents_are_those_of_power_laws() -> None:
    values = np.array([1.0, 2.0, 5.0])
    seconds = np.stack([3.0 * values**2, 0.1 * values**0.5], axis=1)
    np.testing.assert_allclose(benchmark.exponents(values, seconds), [2.0, 0.5])


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ([-3.0, -0.5, -2.0, -0.5, -0.4, -0.9], 200),
        ([-0.5, -0.4, -2.0], None),
        ([-0.5, -0.4, -0.3], 50),
    ],
)
def test_the_bound_stays_above_from_the_last_passing_on(
    bounds: list[float], step: int | None
) -> None:
    watch = BoundWatch(-1.0, 100, num_data=10)
    ends = [
        watch(TrainingProgress(50 * index, 500, 10.0 * bound, model=None, seconds=0.0))
        for index, bound in enumerate(bounds, start=1)
    ]
    assert watch.run.step == step and (watch.run.seconds is None) == (step is None)
    assert ends[-1] == (step is not None and 50 * len(bounds) - step >= 100)


def test_ways_to_the_bound_are_beside_the_papers_protocol() -> None:
    runs = {
        "fast": BoundRun(50, 0.5, 60, -1.0, 1.0),
        "select_model": BoundRun(None, None, 60, -2.0, 1.0),
        "papers": BoundRun(100, 10.0, 120, -1.0, 20.0),
    }
    found = {figure.name: figure.value for figure in benchmark.bound_figures(runs, -1.5)}
    assert found["fast / papers"] == pytest.approx(0.05) and "select_model / papers" not in found
