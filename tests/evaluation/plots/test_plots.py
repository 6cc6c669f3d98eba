"""Figures hold what they should, leave pyplot alone, and can be written."""

from __future__ import annotations

import io
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from package_source import ROOT

from gpflow_dwp.evaluation import (
    plot_calibration,
    plot_depth_effect,
    plot_functions_1d,
    plot_gram_matrices,
    plot_layer_divergences,
    plot_learning_curve,
    plot_pit,
    plot_predictions,
    plots,
)

RNG = np.random.default_rng(0)
GRID = np.linspace(-1.0, 1.0, 20)
CALLS: dict[str, tuple[Any, list[Any]]] = {
    "learning_curve": (plot_learning_curve, [np.arange(300), -np.exp(-np.arange(300) / 9.0)]),
    "predictions": (plot_predictions, [GRID, GRID + 0.1, GRID - 0.2, GRID + 0.4]),
    "depth_effect": (plot_depth_effect, [[1, 2], {"model": [0.0, 1.0]}]),
    "layer_divergences": (plot_layer_divergences, [-np.ones([300, 2])]),
    "pit": (plot_pit, [RNG.uniform(size=50)]),
    "calibration": (plot_calibration, [RNG.uniform(size=50)]),
    "functions_1d": (
        plot_functions_1d,
        [GRID[:, None], GRID[:, None], GRID, np.ones([3, 20]), GRID, GRID - 1.0, GRID + 1.0],
    ),
}
every_plot = pytest.mark.parametrize(("plot", "arguments"), CALLS.values(), ids=CALLS)


def labels(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.figure.legends[0].get_texts()]


@every_plot
def test_draws_on_a_figure_of_its_own(plot: Any, arguments: list[Any]) -> None:
    before = plt.get_fignums()
    ax = plot(*arguments)
    assert plt.get_fignums() == before
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    ax.figure.savefig(io.BytesIO(), format="png")


@every_plot
def test_draws_on_given_axes(plot: Any, arguments: list[Any]) -> None:
    figure, ax = plt.subplots()
    assert plot(*arguments, ax=ax) is ax
    plt.close(figure)


def test_learning_curve_shows_where_it_ends() -> None:
    steps = np.arange(1000)
    elbo = -1e6 * np.exp(-steps / 5.0) + np.sin(steps) - 3.0
    elbo[2] = np.nan
    low, high = plot_learning_curve(steps, elbo).get_ylim()
    assert -10.0 < low < -4.0 < -2.0 < high < 0.0


def test_short_learning_curve_has_no_average() -> None:
    ax = plot_learning_curve([0, 10], [-3.0, -1.0], label="ELBO per datum (nats)")
    assert len(ax.lines) == 1
    assert ax.get_ylabel() == "ELBO per datum (nats)"


def test_predictions_counts_what_is_inside() -> None:
    ax = plot_predictions([0.0, 1.0, 2.0, 3.0], [0.0] * 4, [-0.5] * 4, [2.5] * 4, target="mpg")
    assert labels(ax)[:2] == ["truth inside (75.0%)", "truth outside (25.0%)"]
    assert ax.get_xlabel() == "observed mpg"


def test_calibration_of_known_values() -> None:
    """All targets at the medians: every central interval covers all of them."""
    model = plot_calibration(np.full(10, 0.5)).lines[-1]
    np.testing.assert_array_equal(model.get_ydata(), 1.0)
    uniform = plot_calibration((np.arange(2000) + 0.5) / 2000).lines[-1]
    np.testing.assert_allclose(uniform.get_ydata(), uniform.get_xdata(), atol=1e-3)


def test_functions_without_draws() -> None:
    function, arguments = CALLS["functions_1d"]
    ax = function(*arguments[:3], np.ones([0, 20]), *arguments[4:], interval="90% interval")
    assert labels(ax) == ["90% interval", "mean", "data"]


def test_gram_matrices_share_one_scale() -> None:
    grams = [np.eye(4), 3.0 * np.eye(6)]
    axes = plot_gram_matrices(grams, ["layer 1", "layer 2"])
    assert [ax.get_title() for ax in axes] == ["layer 1", "layer 2"]
    assert {ax.images[0].get_clim() for ax in axes} == {(0.0, 3.0)}
    axes[0].figure.savefig(io.BytesIO(), format="png")
    signed = plot_gram_matrices([-np.eye(3)], ["signed"])
    assert signed[0].images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("plot", "arguments", "message"),
    [
        (plot_learning_curve, [[1, 2], [1.0]], r"one length, .* steps \[2\], elbo \[1\]"),
        (plot_predictions, [[], [], [], []], "at least 1"),
        (plot_calibration, [[0.5, 1.5]], r"pit must lie in \[0, 1\]"),
        (plot_calibration, [[0.5, np.nan]], r"pit must lie in \[0, 1\]"),
        (plot_pit, [[0.5, -0.1]], r"pit must lie in \[0, 1\]"),
        (
            plot_functions_1d,
            [GRID, GRID, GRID, np.ones([3, 4]), GRID, GRID, GRID],
            r"samples must have shape \[S, 20\], got \[3, 4\]",
        ),
        (plot_gram_matrices, [[], []], "at least one, got 0 matrices"),
        (plot_gram_matrices, [[np.eye(2)], ["a", "b"]], "1 matrices, 2 titles"),
        (plot_gram_matrices, [[np.ones([2, 3])], ["a"]], r"shape \[M, M\], got \[2, 3\]"),
    ],
)
def test_refuses(plot: Any, arguments: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot(*arguments)


def test_every_plot_is_shown_in_a_notebook() -> None:
    notebook = (ROOT / "notebooks" / "03_looking_at_a_model.pct.py").read_text(encoding="utf-8")
    shown = [name for name in plots.__all__ if f"axes = {name}(" in notebook]

    assert shown == plots.__all__
