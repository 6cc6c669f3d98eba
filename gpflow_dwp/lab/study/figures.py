"""Figures of a study: measured beside printed, each from one of its tables.

No global state of pyplot is touched: ``figure.savefig(path)`` writes a figure. Without matplotlib
there is an ImportError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from gpflow_dwp.lab.study.published import LARGEST_ROUNDING, PAPERS_WITH_RUNTIMES, PRINTED_NAMES
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_coverage", "plot_densities", "plot_differences", "plot_runtimes", "plot_scores"]

_LABELS = {
    "elbo": "ELBO per datum (nats)",
    "test_log_likelihood": "test log-likelihood (nats, raw units)",
    "rmse": "RMSE (raw units)",
    "crps": "CRPS (raw units)",
}
# Okabe and Ito's colours, which most colour-blind readers can tell apart, and mixtures of them.
_COLOURS = {
    "DGP": "#222222",
    "DIWP": "#CC79A7",
    "GW": "#E69F00",
    "A": "#0072B2",
    "AB": "#009E73",
    "VMG": "#56B4E9",
    "GP": "#8A8A8A",
    "GP-GP": "#A05A00",
    "LV-GP": "#F0E442",
    "LV-GP-GP": "#D55E00",
    "LV-GP-GP-GP": "#882255",
    "LV-DWP": "#332288",
}
_GREY = "#8A8A8A"
_MARKERS = {"improved": "s", "original": "D", "vmg": "^"}
_INFERENCE = {"VI": ("o", -0.15), "IWVI": ("^", 0.15)}
_PRINTED: dict[str, Any] = {"markerfacecolor": "white", "markersize": 5, "alpha": 0.7}
_LEVELS = (50, 90, 95)
_PANELS_IN_A_ROW = 4


def plot_scores(scores: pd.DataFrame, metric: str) -> Figure:
    """Measured and printed means with one standard error: a panel for each data set and depth.

    A printed standard error of 0.00 is drawn as its largest rounding, 0.005; a measured mean of one
    split has no bar.

    :param scores: The table of :func:`~gpflow_dwp.lab.study.tables.score_table`.
    :param metric: One of its metrics.
    :raises ValueError: If the table has no row of the metric.
    """
    blocks = list(_rows_of(scores, metric).groupby("place", sort=False))
    columns = min(len(blocks), _PANELS_IN_A_ROW)
    rows = -(-len(blocks) // columns)
    figure = _figure(2.6 * columns + 0.6, 2.4 * rows + 0.7)
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax in panels[len(blocks) :]:
        ax.set_visible(False)
    for ax, (place, block) in zip(panels, blocks, strict=False):
        for position, row in enumerate(block.to_dict("records")):
            shown: dict[str, Any] = {"color": _COLOURS[row["model"]]}
            bar = row["standard_error"] if row["splits"] > 1 else None
            ax.errorbar(position, row["mean"], bar, fmt="o", capsize=3, label="measured", **shown)
            printed = [paper for paper in _MARKERS if pd.notna(row[f"{paper}_mean"])]
            for offset, paper in enumerate(printed, start=1):
                bar = max(row[f"{paper}_standard_error"], LARGEST_ROUNDING)
                shown |= {"fmt": _MARKERS[paper], "label": f"{paper} paper", **_PRINTED}
                ax.errorbar(position + 0.2 * offset, row[f"{paper}_mean"], bar, **shown)
        ax.set_title(place, fontsize="medium")
        ax.set_xticks(range(len(block)), block["model"].map(PRINTED_NAMES))
        ax.set_xlim(-0.4, max(len(block), 3) - 0.2)  # a panel of two models is not stretched
        ax.spines[["top", "right"]].set_visible(False)
    figure.supylabel(_LABELS[metric], fontsize="medium")
    return _with_legend(figure, panels[: len(blocks)])


def plot_differences(differences: pd.DataFrame, metric: str = "elbo") -> Figure:
    """Paired differences with one standard error: a panel for each pair of models.

    :param differences: The table of :func:`~gpflow_dwp.lab.study.tables.paired_differences`.
    """
    chosen = _rows_of(differences, metric)
    pairs = list(chosen.groupby(["model", "baseline"], sort=False))
    titles = [" − ".join(PRINTED_NAMES[name] for name in pair) for pair, _ in pairs]
    figure, panels = _figure_of_rows(titles, chosen["place"].unique())
    for ax, ((model, _), block) in zip(panels, pairs, strict=True):
        ax.axvline(0.0, color=_GREY, linewidth=1)
        shown: dict[str, Any] = {"color": _COLOURS[model], "markersize": 5}
        bars = block["standard_error"].fillna(0.0)
        measured = {**shown, "fmt": "o", "label": "measured, paired"}
        ax.errorbar(block["mean"], block["row"], xerr=bars, **measured)
        if block["printed_mean"].notna().any():
            bars = block["printed_standard_error"].clip(lower=LARGEST_ROUNDING)
            shown |= {"fmt": "s", "label": "improved paper", **_PRINTED}
            ax.errorbar(block["printed_mean"], block["row"] + 0.25, xerr=bars, **shown)
    figure.supxlabel(f"difference of {_LABELS[metric]}", fontsize="medium")
    return _with_legend(figure, panels)


def plot_runtimes(runtimes: pd.DataFrame) -> Figure:
    """Seconds of an epoch, measured and printed, on a logarithmic axis.

    :param runtimes: The table of :func:`~gpflow_dwp.lab.study.tables.runtime_table`.
    :return: The figure. Times on several machines lie on one line.
    """
    table = _placed(runtimes)
    title = "seconds of one epoch (printed ones on the papers' machines)"
    figure, (ax,) = _figure_of_rows([title], table["place"].unique())
    shown: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    for model, rows in _by_model(table):
        own = {**shown, "color": _COLOURS[model]}
        label = PRINTED_NAMES[model]
        ax.plot(rows["seconds_per_epoch"], rows["row"], marker="o", label=label, **own)
        for paper in PAPERS_WITH_RUNTIMES:
            printed = {**own, "marker": _MARKERS[paper], "fillstyle": "none"}
            ax.plot(rows[f"{paper}_seconds_per_epoch"], rows["row"], **printed)
    for paper in PAPERS_WITH_RUNTIMES:
        if runtimes[f"{paper}_seconds_per_epoch"].notna().any():
            printed = {**shown, "color": _GREY, "marker": _MARKERS[paper], "fillstyle": "none"}
            ax.plot([], [], label=f"{paper} paper", **printed)
    ax.set_xscale("log")
    locator = import_optional("matplotlib.ticker", "cli").LogLocator(subs=(1.0, 2.0, 5.0))
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    return _with_legend(figure, [ax])


def plot_coverage(calibration: pd.DataFrame) -> Figure:
    """Share of test points within central 50%, 90% and 95% intervals, with one standard error.

    :param calibration: The table of :func:`~gpflow_dwp.lab.study.tables.calibration_table`.
    """
    table = _placed(calibration)
    titles = [f"{level}% intervals" for level in _LEVELS]
    figure, panels = _figure_of_rows(titles, table["place"].unique())
    for ax, level in zip(panels, _LEVELS, strict=True):
        ax.axvline(level / 100, color=_GREY, linewidth=1)
        for model, rows in _by_model(table):
            shown: dict[str, Any] = {"color": _COLOURS[model], "label": PRINTED_NAMES[model]}
            bars = rows[f"coverage_{level}_standard_error"].fillna(0.0)
            shown |= {"fmt": "o", "markersize": 4}
            ax.errorbar(rows[f"coverage_{level}"], rows["row"], xerr=bars, **shown)
    figure.supxlabel("share of test points within", fontsize="medium")
    return _with_legend(figure, panels)


def plot_densities(densities: pd.DataFrame) -> Figure:
    """Log-likelihoods of standardised targets: a panel for each data set, a row for each model.

    :param densities: What :func:`~gpflow_dwp.lab.study.tables.density_table` gives, with a row.
    :return: The figure, with measured and printed kernel estimates and one standard error.
    """
    models = [model for model in PRINTED_NAMES if (densities["model"] == model).any()]
    names = [PRINTED_NAMES[model] for model in models]
    blocks = list(densities.groupby("dataset", sort=False))
    figure, panels = _figure_of_rows([name for name, _ in blocks], names)
    for ax, (_, block) in zip(panels, blocks, strict=True):
        for row in block.to_dict("records"):
            marker, shift = _INFERENCE[row["inference"]]
            height = models.index(row["model"]) + shift
            shown: dict[str, Any] = {"color": _COLOURS[row["model"]], "fmt": marker}
            bar = None if row["splits"] < 2 else row["kernel_standard_error"]
            ax.errorbar(row["kernel"], height, xerr=bar, **shown)
            if pd.notna(row["printed_mean"]):
                bar = max(row["printed_standard_error"], LARGEST_ROUNDING)
                ax.errorbar(row["printed_mean"], height + 0.15, xerr=bar, **shown, **_PRINTED)
    for inference in densities["inference"].unique():
        for label, fill in (("measured", "full"), ("printed", "none")):
            shown = {"linestyle": "none", "color": _GREY, "fillstyle": fill}
            shown |= {"marker": _INFERENCE[inference][0], "label": f"{inference}, {label}"}
            panels[0].plot([], [], **shown)
    figure.supxlabel("test log-likelihood (nats, standardised units)", fontsize="medium")
    return _with_legend(figure, panels)


def _placed(table: pd.DataFrame) -> pd.DataFrame:
    """With the name of each row's place, with its configuration where several are, and its row."""
    several = table.groupby(["dataset", "depth"])["configuration"].transform("nunique") > 1
    names = table["dataset"] + ", depth " + table["depth"].astype(str)
    numbered = names + " (" + table["configuration"].astype(str) + ")"
    names = names.where(~several, numbered)
    return table.assign(place=names, row=pd.factorize(names)[0])


def _rows_of(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    chosen = table[table["metric"] == metric]
    if chosen.empty:
        raise ValueError(f"metric must be one of the table's, got {metric!r}, which has no row")
    return _placed(chosen)


def _by_model(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each model with its rows, drawn a little below those of the one before."""
    models = [model for model in PRINTED_NAMES if (table["model"] == model).any()]
    for index, model in enumerate(models):
        rows = table[table["model"] == model]
        shift = 0.6 * (index / max(len(models) - 1, 1) - 0.5)
        yield model, rows.assign(row=rows["row"] + shift)


def _figure_of_rows(titles: Sequence[str], names: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    """Panels side by side that share named rows."""
    width = 7.0 if len(titles) == 1 else min(2.1 * len(titles) + 1.6, 16.0)
    figure = _figure(width, 0.42 * len(names) + 1.5)
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title, fontsize="medium")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=4)
        ax.grid(axis="y", color="#EEEEEE")
        ax.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _figure(width: float, height: float) -> Figure:
    return import_optional("matplotlib.figure", "cli").Figure(
        figsize=(width, height), dpi=120, layout="constrained"
    )


def _with_legend(figure: Figure, panels: Sequence[Axes]) -> Figure:
    """Name each kind of point once, above the panels."""
    named: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    shown: dict[str, Any] = {"loc": "outside upper center", "frameon": False, "fontsize": "small"}
    figure.legend(list(named.values()), list(named), ncols=min(len(named), 4), **shown)
    return figure
