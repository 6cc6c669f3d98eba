"""Predictions and their uncertainty, against what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from gpflow_dwp.evaluation.plots._drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    check_vectors,
    named,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration", "plot_functions_1d", "plot_predictions"]


def plot_predictions(
    y_true: npt.ArrayLike,
    mean: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    target: str = "target",
    interval: str = "95% interval",
) -> Axes:
    """Predictions with their intervals against the truth; perfect ones lie on the diagonal.

    :param y_true: Targets in raw units, [N].
    :param mean: Predicted means, [N].
    :param lower: Lower ends of the intervals, [N].
    :param upper: Upper ends of the intervals, [N].
    :param ax: Axes to draw on; by default those of a new figure.
    :param target: Name of the target, with its unit.
    :param interval: Name of the intervals.
    :return: The axes.
    :raises ValueError: If the arguments are not vectors of one length.
    """
    truth, centre, low, high = check_vectors(y_true=y_true, mean=mean, lower=lower, upper=upper)
    ax = axes_or_new(ax, size=(5.2, 4.8))
    inside = (low <= truth) & (truth <= high)
    crowded = float(np.clip(7.0 / np.sqrt(len(truth)), 0.2, 0.8))
    for chosen, colour, where in ((inside, BLUE, "inside"), (~inside, ORANGE, "outside")):
        share = f"truth {where} ({np.mean(chosen):.1%})"
        ax.vlines(
            truth[chosen], low[chosen], high[chosen], color=colour, alpha=crowded, linewidth=1
        )
        size = 3.0 + 3.0 * crowded
        ax.plot(truth[chosen], centre[chosen], ".", color=colour, markersize=size, label=share)
    diagonal: dict[str, Any] = {"color": BLACK, "linewidth": 1, "linestyle": "--", "zorder": 3}
    ax.axline((truth[0], truth[0]), slope=1.0, label="predicted = observed", **diagonal)
    ax.legend(loc="upper left", frameon=False, title=interval, alignment="left")
    return named(ax, f"observed {target}", f"predicted {target}")


def plot_calibration(
    pit: npt.ArrayLike, ax: Axes | None = None, *, confidence: float = 0.95
) -> Axes:
    """Share of targets within central intervals, against the share that there should be.

    Below the diagonal the model is too sure of itself. The band is where the curve of a calibrated
    model stays, at each level, with probability ``confidence``.

    :param pit: Predictive distribution function at the observed targets, in [0, 1], [N].
    :param ax: Axes to draw on; by default those of a new figure.
    :param confidence: Probability of the band, between 0 and 1.
    :return: The axes.
    :raises ValueError: If ``pit`` is not a vector of numbers in [0, 1].
    """
    (values,) = check_vectors(pit=pit)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("pit must lie in [0, 1]")
    ax = axes_or_new(ax, size=(4.8, 4.8))
    nominal = np.linspace(0.0, 1.0, 101)
    centrality = np.sort(np.abs(2.0 * values - 1.0))
    observed = np.searchsorted(centrality, nominal, side="right") / len(values)
    tail = 0.5 * (1.0 - confidence)
    low, high = (binom.ppf(q, len(values), nominal) / len(values) for q in (tail, 1.0 - tail))
    band = f"{confidence:.0%} band if calibrated"
    ax.fill_between(nominal, low, high, color=GREY, alpha=0.25, linewidth=0, label=band)
    ax.plot([0, 1], [0, 1], color=BLACK, linewidth=1, linestyle="--", label="calibrated")
    ax.plot(nominal, observed, color=BLUE, label=f"model, {len(values)} points")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(loc="upper left", frameon=False)
    return named(ax, "nominal coverage of central interval", "observed coverage")


def plot_functions_1d(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    grid: npt.ArrayLike,
    samples: npt.ArrayLike,
    mean: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    interval: str = "95% interval",
) -> Axes:
    """Data on a line, with predicted mean, interval and draws of functions.

    :param X: Inputs of the data, [N] or [N, 1].
    :param Y: Targets of the data, [N] or [N, 1].
    :param grid: Inputs of the predictions, increasing, [G] or [G, 1].
    :param samples: Draws of functions, [S, G]; S may be 0.
    :param mean: Predicted mean, [G].
    :param lower: Lower end of the interval, [G].
    :param upper: Upper end of the interval, [G].
    :param ax: Axes to draw on; by default those of a new figure.
    :param interval: Name of the interval.
    :return: The axes.
    :raises ValueError: If the shapes do not fit together.
    """
    x, y = check_vectors(X=X, Y=Y)
    points, centre, low, high = check_vectors(grid=grid, mean=mean, lower=lower, upper=upper)
    draws = np.asarray(samples, np.float64)
    if draws.ndim != 2 or draws.shape[1] != len(points):
        raise ValueError(f"samples must have shape [S, {len(points)}], got {list(draws.shape)}")
    ax = axes_or_new(ax, size=(7.0, 4.0))
    ax.fill_between(points, low, high, color=BLUE, alpha=0.18, linewidth=0, label=interval)
    for i, draw in enumerate(draws):
        label = "draws of the function" if i == 0 else None
        ax.plot(points, draw, color=ORANGE, alpha=0.55, linewidth=0.8, label=label)
    ax.plot(points, centre, color=BLUE, linewidth=1.8, label="mean")
    ax.plot(x, y, ".", color=BLACK, markersize=5, label="data", zorder=3)
    ax.set_xlim(points.min(), points.max())
    ax.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")
    return named(ax, "x", "y")
