"""The effect of depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.evaluation.plots._drawing import COLOURS, axes_or_new, legend_below, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_depth_effect"]


def plot_depth_effect(
    depths: Sequence[int],
    scores: Mapping[str, npt.ArrayLike],
    ax: Axes | None = None,
    *,
    label: str = "score",
) -> Axes:
    """A score against depth, for one or more models.

    :param depths: Depths, increasing, [K].
    :param scores: Scores by the name of the model: [K], or [K, R] for R repetitions, such as
        splits, of which the mean and its standard error are shown.
    :param ax: Axes to draw on; by default those of a new figure.
    :param label: What the score is, and its unit.
    :return: The axes.
    :raises ValueError: If there is no score, or one's first axis is not K long.
    """
    places = np.asarray(depths)
    if not scores or places.ndim != 1 or not len(places):
        raise ValueError("there must be at least one depth and one model with scores.")
    tables = {}
    for name, values in scores.items():
        table = np.asarray(values, np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != len(places) or not table.size:
            raise ValueError(
                f"scores of {name!r} must have shape [{len(places)}] or [{len(places)}, R], "
                f"got {list(np.shape(values))}."
            )
        tables[name] = table
    ax = axes_or_new(ax, size=(5.2, 3.6))
    for index, (name, table) in enumerate(tables.items()):
        repetitions = table.shape[1]
        error = table.std(axis=1, ddof=1) / np.sqrt(repetitions) if repetitions > 1 else None
        ax.errorbar(
            places,
            table.mean(axis=1),
            yerr=error,
            color=COLOURS[index % len(COLOURS)],
            marker="o",
            capsize=3,
            label=name,
        )
    ax.set_xticks(places)
    legend_below(ax, ncols=4)
    return named(ax, "depth (layers)", label)
