"""What the floor counts, and that it runs."""

from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks.floor import (
    Floor,
    Operation,
    floor_operations,
    prediction_operations,
)
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, Shape

SHAPE = Shape(num_data=50, num_inputs=3, num_inducing=20, num_samples=4, depth=3)


def flops(operations: list[Operation]) -> float:
    """Multiplications and additions: of a product 2 a b c, of a solve half, of a factor a sixth."""
    parts = {"gemm": 2.0, "trsm": 1.0, "potrf": 1.0 / 3.0}
    return sum(parts[o.routine] * o.rows * o.inner * o.columns * o.times for o in operations)


def test_the_first_layer_has_one_covariance_for_all_draws() -> None:
    operations = floor_operations(SHAPE, "AB")

    counts = {o.name: o.times for o in operations}
    assert counts["layer 1: L = chol K"] == 1
    assert counts["layer 2: L = chol K"] == 4
    assert counts["layer 1: mean and its gradients"] == 12


def test_whitening_saves_the_operations_of_the_scale() -> None:
    names = {o.name for o in floor_operations(SHAPE, "A-whitened")}

    assert names < {o.name for o in floor_operations(SHAPE, "AB")}
    assert not any("Σ" in name or "Q" in name for name in names)


@pytest.mark.parametrize("field", ["num_data", "num_samples", "depth"])
def test_cost_grows_linearly(field: str) -> None:
    values = [
        flops(floor_operations(SHAPES["yacht-5"]._replace(**{field: size}), "AB"))
        for size in (10, 20, 30)
    ]
    np.testing.assert_allclose(values[2] - values[1], values[1] - values[0], rtol=1e-12)


def test_cost_grows_no_faster_than_cubically_in_inducing_points() -> None:
    sizes = (1_000, 2_000)
    one, two = (flops(floor_operations(SHAPE._replace(num_inducing=size), "AB")) for size in sizes)
    assert two / one < 8.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_runs_over_and_over_without_overflow(dtype: str) -> None:
    with np.errstate(all="raise"):
        Floor(floor_operations(SHAPE, "AB"), SHAPE.num_samples, dtype).run(3)


def test_operations_of_predictions_are_those_of_rows_alone() -> None:
    operations = prediction_operations(SHAPE)

    assert all(operation.columns == 50 for operation in operations)
    counts = {operation.name: operation.times for operation in operations}
    assert counts["layer 1: V = L⁻¹ C"] == 1 and counts["layer 2: V = L⁻¹ C"] == 4
    assert counts["output: V = R C"] == 4
    (output,) = prediction_operations(SHAPE._replace(depth=1))
    assert output.times == 1
