"""What float32 loses is measured at one state, with the same draws."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
from study_archive import write_archive

from gpflow_dwp.lab.benchmarks.gradients import Draws
from gpflow_dwp.lab.benchmarks.precision import benchmark_precision, precision_figures


@pytest.mark.slow
def test_both_precisions_agree_on_a_small_model(tmp_path: Path) -> None:
    lines: list[str] = []

    found = benchmark_precision(
        depth=2,
        model="AB",
        dtype="float32",
        output="pseudo_targets",
        num_steps=5,
        num_draws=3,
        uci_folder=write_archive(tmp_path),
        report=lines.append,
    )

    figures = {figure.name: figure for figure in found["AB of depth 2 on yacht, split 0"].figures}
    assert figures["bound per datum in float64"].spread > 0.0
    lost = figures["lost in float32"]
    assert 0.0 < abs(lost.value) < 1e-3 and lost.at_most == 0.05
    assert 0.0 < abs(figures["lost by a change of 1e-12"].value) < 1e-9
    for what, limit in {"error": 0.01, "change by 1e-12": 1e-9}.items():
        ratios = [figure.value for name, figure in figures.items() if f", {what} /" in name]
        assert len(ratios) == 8 and 0.0 < max(ratios) < limit
    assert lines == [
        "trained for 5 steps in float32",
        "3 gradients in float64",
        "3 gradients in float32",
        "3 gradients in float64, parameters off by 1e-12",
    ]
    assert gpflow.default_float() is np.float64


def test_figures_are_those_of_the_differences() -> None:
    size = np.array([[3.0, 0.0], [0.0, 4.0]])
    none = np.zeros((2, 1))

    def draws(bounds: list[float], change: list[list[float]]) -> Draws:
        return Draws(np.array(bounds), {"kernels": size + change, "likelihood": none})

    whole, lost, nudged, error, change = precision_figures(
        draws([1.0, 3.0], [[0.0, 0.0], [0.0, 0.0]]),
        draws([0.9, 2.7], [[0.0, 0.3], [0.4, 0.0]]),
        draws([1.1, 3.0], [[0.03, 0.0], [0.0, 0.04]]),
    )

    assert whole.value == 2.0 and whole.spread == pytest.approx(1.0)
    assert lost.value == pytest.approx(0.2) and lost.spread == pytest.approx(0.1)
    assert nudged.value == pytest.approx(-0.05) and nudged.spread == pytest.approx(0.05)
    assert error.name == "gradient of kernels, error / size" and error.value == pytest.approx(0.1)
    assert change.name == "gradient of kernels, change by 1e-12 / size"
    assert change.value == pytest.approx(0.01)


def test_one_draw_has_no_standard_error() -> None:
    with pytest.raises(ValueError, match="--num-draws must be an integer of at least 2, got 1"):
        benchmark_precision(num_draws=1, report=pytest.fail)
