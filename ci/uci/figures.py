"""Figures of the study: measured beside printed, each from one of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from uci.tables import LARGEST_ROUNDING, NAMES

LABELS = {
    "elbo": "ELBO per datum (nats)",
    "test_log_likelihood": "test log-likelihood (nats, raw units)",
    "rmse": "RMSE (raw units)",
}
# Okabe and Ito's colours, which most colour-blind readers can tell apart, and mixtures of them.
COLOURS = dict(
    zip(
        NAMES,
        [
            *("#222222", "#CC79A7", "#E69F00", "#0072B2", "#009E73", "#56B4E9", "#8A8A8A"),
            *("#A05A00", "#5A3A00", "#F0E442", "#D55E00", "#882255", "#AA4499"),
        ],
        strict=True,
    )
)
_MARKERS = {"improved": "s", "original": "D", "vmg": "^"}
_PRINTED: dict[str, Any] = {"markerfacecolor": "white", "markersize": 5, "alpha": 0.7}


def plot_scores(scores: pd.DataFrame, metric: str) -> Figure:
    """Measured and printed means with one standard error: a panel for each data set and depth.

    A printed standard error of 0.00 is drawn as its largest rounding; one split has no bar.

    :param scores: The table of :func:`~uci.tables.score_table`.
    """
    blocks = list(_placed(scores[scores["metric"] == metric]).groupby("place", sort=False))
    columns = min(len(blocks), 4)
    rows = -(-len(blocks) // columns)
    figure = Figure((2.6 * columns + 0.6, 2.4 * rows + 0.7), dpi=120, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax in panels[len(blocks) :]:
        ax.set_visible(False)
    for ax, (place, block) in zip(panels, blocks, strict=False):
        for position, row in enumerate(block.to_dict("records")):
            shown: dict[str, Any] = {"color": COLOURS[row["model"]]}
            bar = row["standard_error"] if row["splits"] > 1 else None
            ax.errorbar(position, row["mean"], bar, fmt="o", capsize=3, label="measured", **shown)
            papers = [paper for paper in _MARKERS if pd.notna(row[f"{paper}_mean"])]
            for offset, paper in enumerate(papers, start=1):
                bar = max(row[f"{paper}_standard_error"], LARGEST_ROUNDING)
                shown |= {"fmt": _MARKERS[paper], "label": f"{paper} paper", **_PRINTED}
                ax.errorbar(position + 0.2 * offset, row[f"{paper}_mean"], bar, **shown)
        ax.set_title(place, fontsize="medium")
        ax.set_xticks(range(len(block)), block["model"].map(NAMES))
        ax.set_xlim(-0.4, max(len(block), 3) - 0.2)  # a panel of two models is not stretched
    figure.supylabel(LABELS[metric], fontsize="medium")
    return _with_legend(figure, panels[: len(blocks)])


def plot_traces(cells: pd.DataFrame) -> Figure:
    """The bound in the course of training, against seconds and epochs, as in the original paper's
    Figure 1: a row of panels for each data set and depth.

    :param cells: Those with a ``trace`` of a bound; of each model and place the first.
    """
    cells = cells[cells["trace"].map(lambda trace: isinstance(trace, list))]
    cells = cells[cells["model"] != "VMG"]
    places = list(cells.groupby(["dataset", "depth"], sort=False))
    figure = Figure((8.0, 2.6 * len(places) + 0.6), dpi=120, layout="constrained")
    panels = figure.subplots(len(places), 2, squeeze=False, sharey="row")
    for row, ((dataset, depth), block) in zip(panels, places, strict=True):
        for cell in block.drop_duplicates("model").to_dict("records"):
            steps, seconds, bounds = np.array(cell["trace"]).T
            epochs = steps * cell["seconds_per_step"] / cell["seconds_per_epoch"]
            for ax, reached in zip(row, (seconds, epochs), strict=True):
                ax.plot(reached, bounds, color=COLOURS[cell["model"]], label=NAMES[cell["model"]])
        low, high = np.quantile(bounds, [0.2, 1.0])
        row[0].set_ylim(low - (high - low), high + 0.1 * (high - low))
        row[0].set_title(f"{dataset}, depth {depth}", fontsize="medium")
    panels[-1][0].set_xlabel("seconds")
    panels[-1][1].set_xlabel("epochs")
    figure.supylabel(LABELS["elbo"], fontsize="medium")
    return _with_legend(figure, panels.ravel())


def _placed(table: pd.DataFrame) -> pd.DataFrame:
    """With the name of each row's place, with its configuration where several are, and its row."""
    several = table.groupby(["dataset", "depth"])["configuration"].transform("nunique") > 1
    names = table["dataset"] + ", depth " + table["depth"].astype(str)
    names = names.where(~several, names + " (" + table["configuration"].astype(str) + ")")
    return table.assign(place=names, row=pd.factorize(names)[0])


def _with_legend(figure: Figure, panels: Sequence[Axes]) -> Figure:
    """Name each kind of point once, above the panels."""
    named: dict[str, Any] = {}
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    shown: dict[str, Any] = {"loc": "outside upper center", "frameon": False, "fontsize": "small"}
    figure.legend(list(named.values()), list(named), ncols=min(len(named), 4), **shown)
    return figure
