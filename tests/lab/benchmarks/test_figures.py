"""What the figures show."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks import plot_scale


def test_a_panel_shows_medians_and_the_aim() -> None:
    pytest.importorskip("matplotlib")
    seconds = {"M = 10": [0.001, 0.002, 0.009], "M = 20": [0.008, 0.008, 0.016]}
    measured = {
        "values": [10, 20],
        "figures": [{}, {}, {"value": 2.0, "at_most": 3.0}],
        "timings": {name: {"processor_seconds": times} for name, times in seconds.items()},
    }

    figure = plot_scale({"M": measured})

    (ax,) = figure.axes
    assert ax.get_xlabel() == "inducing points, M"
    aim, points = ax.lines[0], ax.lines[1]
    np.testing.assert_allclose(points.get_ydata(), [2.0, 8.0])
    np.testing.assert_allclose(aim.get_ydata(), [1.0, 8.0])
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["exponent 3", "measured, growth 2.00"]
    figure.savefig(io.BytesIO(), format="png")
