"""One figure of a comparison: how far each model is from the best of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpflow_dwp.lab.comparison.scoreboard import in_order
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_relative_scores"]

# Of each task the scores that are shown; that with a unit as a ratio.
_SHOWN = {
    "regression": {
        "nlpd": "NLPD less that of the best (nats)",
        "crps": "CRPS over that of the best, less 1",
    },
    "classification": {
        "nll": "NLL less that of the best (nats)",
        "error": "error less that of the best",
    },
}
_LARGEST = 3.0
_LINEAR_BELOW = 0.1

# Okabe and Ito's colours, which most colour-blind readers can tell apart; black is for dwp.
_STYLES = {
    "exact-gp": ("#0072B2", "s"),
    "svgp": ("#0072B2", "s"),
    "bayesian-ridge": ("#E69F00", "v"),
    "logistic": ("#E69F00", "v"),
    "hist-gb": ("#009E73", "^"),
    "random-forest": ("#CC79A7", "D"),
    "ngboost": ("#56B4E9", "P"),
    "svc": ("#D55E00", "X"),
}
_BLACK = "#000000"
_OWN = ("o", "*", "h", "p", "d", "8", "<", ">")


def plot_relative_scores(scores: pd.DataFrame) -> Figure:
    """Draw each model's distance to the best, a row for each table: the further left the better.

    The scale is linear up to 0.1 and logarithmic beyond; what is more than 3 is drawn at 3.

    :param scores: As :func:`comparison_scores` gives them.
    """
    tasks = [task for task in _SHOWN if (scores["task"] == task).any()]
    heights = [scores.loc[scores["task"] == task, "table"].nunique() + 1.5 for task in tasks]
    figure = import_optional("matplotlib.figure", "cli").Figure(
        figsize=(9.0, 0.34 * sum(heights) + 1.0), dpi=150, layout="constrained"
    )
    panels = figure.subplots(len(tasks), 2, squeeze=False, height_ratios=heights, sharey="row")
    ours = [label for label in scores["label"].unique() if label not in _STYLES]
    styles = _STYLES | {label: (_BLACK, _OWN[i % len(_OWN)]) for i, label in enumerate(ours)}
    for task, row in zip(tasks, panels, strict=True):
        for ax, (metric, title) in zip(row, _SHOWN[task].items(), strict=True):
            _draw(ax, scores[scores["metric"] == metric], styles, is_ratio=metric == "crps")
            ax.set_xlabel(title)
    drawn = {
        label: handle
        for ax in panels[:, 0]
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    labels = scores["label"].sort_values(key=in_order).unique()
    figure.legend([drawn[label] for label in labels], labels, loc="outside upper center", ncols=5)
    return figure


def _draw(
    ax: Axes, rows: pd.DataFrame, styles: dict[str, tuple[str, str]], *, is_ratio: bool
) -> None:
    tables = list(rows["table"].unique())
    best = rows["table"].map(rows[rows["is_best"]].groupby("table")["mean"].first())
    distance = rows["mean"] / best - 1.0 if is_ratio else rows["mean"] - best
    distance = np.clip(distance.fillna(np.inf), 0.0, _LARGEST)
    heights = rows["table"].map({table: place for place, table in enumerate(tables)})
    for label in rows["label"].unique():
        chosen = rows["label"] == label
        colour, marker = styles[label]
        shown = {"linestyle": "", "color": colour, "marker": marker, "label": label, "alpha": 0.8}
        above = 4 if colour == _BLACK else 3
        ax.plot(distance[chosen], heights[chosen], clip_on=False, zorder=above, **shown)
    ax.set_yticks(range(len(tables)), tables)
    ax.set_ylim(len(tables) - 0.5, -0.5)
    ax.set_xscale("symlog", linthresh=_LINEAR_BELOW)
    ax.set_xlim(0.0, _LARGEST)
    ticks = [0.0, 0.05, 0.1, 0.3, 1.0, _LARGEST]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks[:-1]] + [f"≥ {_LARGEST:g}"])
    ax.minorticks_off()
    ax.grid(color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
