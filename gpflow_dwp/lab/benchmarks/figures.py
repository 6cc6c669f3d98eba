"""Figures of benchmarks. No global state of pyplot is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_scale"]

_AXIS_LABELS = {
    "N": "rows of a batch, N",
    "S": "draws, S",
    "depth": "depth",
    "M": "inducing points, M",
}
_COLOUR = "#0072B2"
_GREY = "#8A8A8A"


def plot_scale(scale: Mapping[str, Any]) -> Figure:
    """Draw the processor time of a step against each size, both on logarithmic axes.

    Points are medians over turns, their bars quartiles; the grey line through the last point has
    the exponent that growth is meant to have at most.

    :param scale: What :func:`~gpflow_dwp.lab.benchmarks.scale.benchmark_scale` returned.
    :return: The figure, one panel for each axis.
    :raises ImportError: If matplotlib is not installed.
    """
    figure = import_optional("matplotlib.figure", "cli").Figure(
        figsize=(3.0 * len(scale), 3.0), dpi=120, layout="constrained"
    )
    ticker = import_optional("matplotlib.ticker", "cli")
    panels = figure.subplots(1, len(scale), squeeze=False)[0]
    for ax, (axis, measured) in zip(panels, scale.items(), strict=True):
        values = np.array(measured["values"], float)
        seconds = np.array([timing["processor_seconds"] for timing in measured["timings"].values()])
        low, middle, high = 1e3 * np.percentile(seconds, [25, 50, 75], axis=1)
        growth = measured["figures"][2]
        ax.plot(
            values,
            middle[-1] * (values / values[-1]) ** growth["at_most"],
            color=_GREY,
            linewidth=1,
            label=f"exponent {growth['at_most']:g}",
        )
        ax.errorbar(
            values,
            middle,
            yerr=[middle - low, high - middle],
            fmt="o-",
            color=_COLOUR,
            markersize=4,
            label=f"measured, growth {growth['value']:.2f}",
        )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.set_xticks([], minor=True)
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
        ax.set_xlabel(_AXIS_LABELS.get(axis, axis))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    panels[0].set_ylabel("processor time of a step (ms)")
    return figure
