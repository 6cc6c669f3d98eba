"""Peak memory, and what is counted as kept."""

from __future__ import annotations

import sys

import pytest

from gpflow_dwp.lab.benchmarks.memory import benchmark_memory, kept_elements
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, Shape

SHAPE = Shape(num_data=50, num_inputs=3, num_inducing=20, num_samples=4, depth=3)


def total(shape: Shape, model: str = "AB") -> int:
    return sum(kept_elements(shape, model).values())


def test_the_first_layer_has_one_covariance_for_all_draws() -> None:
    elements = kept_elements(SHAPE, "AB")

    assert elements["layer 1: V = L⁻¹ C"] == 20 * 50
    assert elements["layer 2: V = L⁻¹ C"] == 4 * 20 * 50
    assert elements["layer 1: T"] == 4 * 20 * 3
    assert elements["output: V = R C"] == 4 * 20 * 50


def test_whitening_saves_three_matrices_in_each_layer() -> None:
    assert total(SHAPE) - total(SHAPE, "A-whitened") == 3 * 20 * 20 * (1 + 4)


@pytest.mark.parametrize("field", ["num_data", "num_samples", "depth"])
def test_memory_grows_linearly(field: str) -> None:
    values = [total(SHAPES["yacht-5"]._replace(**{field: size})) for size in (10, 20, 30)]
    assert values[2] - values[1] == values[1] - values[0]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_step_needs_what_it_must_keep_and_little_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # Large enough that its arrays are not lost among the pages of small ones.
    monkeypatch.setitem(SHAPES, "yacht-2", Shape(300, 3, 60, 20, 3))
    lines: list[str] = []

    result = benchmark_memory(shapes=("yacht-2",), models=("AB",), turns=1, report=lines.append)

    assert lines == ["yacht-2: measured AB step float64"]
    ratio, peak, kept = result["yacht-2"].figures
    assert ratio.name == "AB step float64, peak / kept" and ratio.at_most == 2.0
    assert 1.0 < ratio.value < 3.0
    assert kept.value == pytest.approx(8e-6 * total(SHAPES["yacht-2"]))
    assert peak.value == pytest.approx(ratio.value * kept.value)
    assert result["yacht-2"].values["peaks"]["AB step float64"] == [pytest.approx(1e6 * peak.value)]


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(OSError, match="on Linux only, this is darwin"):
        benchmark_memory(report=pytest.fail)
