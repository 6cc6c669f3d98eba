"""Figures of a study: measured beside printed, each from one table of the summary.

No global state of pyplot is touched: ``figure.savefig(path)`` writes a figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpflow_dwp.lab.study._grouping import groups, select
from gpflow_dwp.lab.study.published import LARGEST_ROUNDING, PAPERS_WITH_RUNTIMES, PRINTED_NAMES
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "METRIC_LABELS",
    "plot_coverage",
    "plot_densities",
    "plot_differences",
    "plot_runtimes",
    "plot_scores",
]

METRIC_LABELS = {
    "elbo": "ELBO per datum (nats)",
    "test_log_likelihood": "test log-likelihood (nats, raw units)",
    "rmse": "RMSE (raw units)",
    "crps": "CRPS (raw units)",
}

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
_COLOURS = {
    "DGP": "#222222",
    "DIWP": "#CC79A7",
    "GW": "#E69F00",
    "A": "#0072B2",
    "AB": "#009E73",
    "VMG": "#56B4E9",
    # The last of the eight and mixtures of them.
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
_LEVELS = (50, 90, 95)
_PANELS_IN_A_ROW = 4


def plot_scores(scores: pd.DataFrame, metric: str) -> Figure:
    """Measured and printed means with one standard error: a panel for each data set and depth.

    A printed standard error of 0.00 is drawn as its largest rounding, 0.005; a measured mean of one
    split has no bar.

    :param scores: The table of :func:`~gpflow_dwp.lab.study.summary.score_table`.
    :param metric: One of its metrics.
    :return: The figure.
    :raises ValueError: If the table has no row of the metric.
    :raises ImportError: If matplotlib is not installed.
    """
    chosen = _rows_of(scores, metric)
    blocks = list(groups(chosen, ["dataset", "depth", "configuration"]))
    columns = min(len(blocks), _PANELS_IN_A_ROW)
    rows = -(-len(blocks) // columns)
    figure = _figure((2.6 * columns + 0.6, 2.4 * rows + 0.7))
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax, (place, block) in zip(panels, blocks, strict=False):
        _draw_block(ax, block)
        ax.set_title(_place(place, chosen), fontsize="medium")
    for ax in panels[len(blocks) :]:
        ax.set_visible(False)
    figure.supylabel(METRIC_LABELS.get(metric, metric), fontsize="medium")
    _legend(figure, panels[: len(blocks)])
    return figure


def plot_differences(differences: pd.DataFrame, metric: str = "elbo") -> Figure:
    """Paired differences with one standard error: a panel for each pair of models.

    :param differences: The table of :func:`~gpflow_dwp.lab.study.comparisons.paired_differences`.
    :param metric: One of its metrics.
    :return: The figure.
    :raises ValueError: If the table has no row of the metric.
    :raises ImportError: If matplotlib is not installed.
    """
    chosen = _rows_of(differences, metric)
    pairs = list(groups(chosen, ["model", "baseline"]))
    titles = [
        f"{PRINTED_NAMES[pair['model']]} − {PRINTED_NAMES[pair['baseline']]}" for pair, _ in pairs
    ]
    figure, panels, names = _rows_figure(chosen, titles)
    for ax, (pair, block) in zip(panels, pairs, strict=True):
        ax.axvline(0.0, color=_GREY, linewidth=1)
        heights = [names.index(_place(row, chosen)) for row in block.to_dict("records")]
        shown: dict[str, Any] = {"color": _COLOURS[pair["model"]], "markersize": 5}
        bars = block["standard_error"].fillna(0.0)
        ax.errorbar(block["mean"], heights, xerr=bars, fmt="o", label="measured, paired", **shown)
        if block["printed_mean"].notna().any():
            bars = block["printed_standard_error"].clip(lower=LARGEST_ROUNDING)
            below = [height + 0.25 for height in heights]
            shown |= {"markerfacecolor": "white", "alpha": 0.7}
            ax.errorbar(
                block["printed_mean"], below, xerr=bars, fmt="s", label="improved paper", **shown
            )
    figure.supxlabel(f"difference of {METRIC_LABELS.get(metric, metric)}", fontsize="medium")
    _legend(figure, panels)
    return figure


def plot_runtimes(runtimes: pd.DataFrame) -> Figure:
    """Seconds of an epoch, measured and printed, on a logarithmic axis.

    :param runtimes: The table of :func:`~gpflow_dwp.lab.study.summary.runtime_table`.
    :return: The figure. Times on several machines lie on one line.
    :raises ImportError: If matplotlib is not installed.
    """
    figure, (ax,), names = _rows_figure(
        runtimes, ["seconds of one epoch (printed ones on the papers' machines)"]
    )
    shown: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    for (model, height), rows in _by_model(runtimes, names):
        measured: dict[str, Any] = {
            "color": _COLOURS[model],
            "marker": "o",
            "label": PRINTED_NAMES[model],
        }
        ax.plot(rows["seconds_per_epoch"], height, **shown, **measured)
        for paper in PAPERS_WITH_RUNTIMES:
            printed = rows[f"{paper}_seconds_per_epoch"]
            ax.plot(printed, height, **shown, **_hollow(paper, _COLOURS[model]))
    for paper in PAPERS_WITH_RUNTIMES:
        if runtimes[f"{paper}_seconds_per_epoch"].notna().any():
            label = f"{paper} paper"
            ax.plot([], [], label=label, **shown, **_hollow(paper, _GREY))
    ax.set_xscale("log")
    locator = import_optional("matplotlib.ticker", "cli").LogLocator(subs=(1.0, 2.0, 5.0))
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    _legend(figure, [ax])
    return figure


def plot_coverage(calibration: pd.DataFrame) -> Figure:
    """Share of test points within central 50%, 90% and 95% intervals, with one standard error.

    :param calibration: The table of :func:`~gpflow_dwp.lab.study.summary.calibration_table`.
    :return: The figure.
    :raises ImportError: If matplotlib is not installed.
    """
    titles = [f"{level}% intervals" for level in _LEVELS]
    figure, panels, names = _rows_figure(calibration, titles)
    for ax, level in zip(panels, _LEVELS, strict=True):
        ax.axvline(level / 100, color=_GREY, linewidth=1)
        for (model, height), rows in _by_model(calibration, names):
            bars = rows[f"coverage_{level}_standard_error"].fillna(0.0)
            shown: dict[str, Any] = {"color": _COLOURS[model], "label": PRINTED_NAMES[model]}
            ax.errorbar(
                rows[f"coverage_{level}"], height, xerr=bars, fmt="o", markersize=4, **shown
            )
    figure.supxlabel("share of test points within", fontsize="medium")
    _legend(figure, panels)
    return figure


def plot_densities(densities: pd.DataFrame) -> Figure:
    """Log-likelihoods of standardised targets: a panel for each data set, a row for each model.

    :param densities: What :func:`~gpflow_dwp.lab.study.densities.density_table` gives, with a row.
    :return: The figure, with measured and printed kernel estimates and one standard error.
    :raises ImportError: If matplotlib is not installed.
    """
    models = [model for model in PRINTED_NAMES if (densities["model"] == model).any()]
    blocks = list(groups(densities, ["dataset"]))
    figure = _figure((2.3 * len(blocks) + 1.6, 0.42 * len(models) + 1.6))
    panels = list(figure.subplots(1, len(blocks), sharey=True, squeeze=False)[0])
    for ax, (place, block) in zip(panels, blocks, strict=True):
        for row in block.to_dict("records"):
            marker, shift = _INFERENCE[row["inference"]]
            height = models.index(row["model"]) + shift
            shown: dict[str, Any] = {"color": _COLOURS[row["model"]], "marker": marker}
            bar = None if row["splits"] < 2 else row["kernel_standard_error"]
            ax.errorbar(row["kernel"], height, xerr=bar, linestyle="none", **shown)
            if row["printed_mean"] == row["printed_mean"]:  # not NaN
                bar = max(row["printed_standard_error"], LARGEST_ROUNDING)
                shown |= {"markerfacecolor": "white", "alpha": 0.7, "linestyle": "none"}
                ax.errorbar(row["printed_mean"], height + 0.15, xerr=bar, **shown)
        ax.set_title(place["dataset"], fontsize="medium")
        ax.set_yticks(range(len(models)), [PRINTED_NAMES[model] for model in models])
        ax.set_ylim(len(models) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=4)
        ax.grid(axis="y", color="#EEEEEE")
        ax.spines[["top", "right"]].set_visible(False)
    for inference in densities["inference"].unique():
        for label, fill in (("measured", "full"), ("printed", "none")):
            name, marker = f"{inference}, {label}", _INFERENCE[inference][0]
            empty: list[float] = []
            shown = {"linestyle": "none", "color": _GREY, "fillstyle": fill}
            panels[0].plot(empty, empty, marker=marker, label=name, **shown)
    figure.supxlabel("test log-likelihood (nats, standardised units)", fontsize="medium")
    _legend(figure, panels)
    return figure


def _hollow(paper: str, colour: str) -> dict[str, Any]:
    return {"color": colour, "marker": _MARKERS[paper], "fillstyle": "none"}


def _draw_block(ax: Axes, block: pd.DataFrame) -> None:
    for position, row in enumerate(block.to_dict("records")):
        colour = _COLOURS[row["model"]]
        bar = None if row["splits"] < 2 else row["standard_error"]
        ax.errorbar(
            position, row["mean"], yerr=bar, fmt="o", color=colour, capsize=3, label="measured"
        )
        printed = [paper for paper in _MARKERS if row[f"{paper}_mean"] == row[f"{paper}_mean"]]
        for offset, paper in enumerate(printed, start=1):
            ax.errorbar(
                position + 0.2 * offset,
                row[f"{paper}_mean"],
                yerr=max(row[f"{paper}_standard_error"], LARGEST_ROUNDING),
                fmt=_MARKERS[paper],
                color=colour,
                markerfacecolor="white",
                markersize=5,
                alpha=0.7,
                label=f"{paper} paper",
            )
    ax.set_xticks(range(len(block)), [PRINTED_NAMES[model] for model in block["model"]])
    ax.set_xlim(-0.4, max(len(block), 3) - 0.2)  # a panel of two models is not stretched
    ax.spines[["top", "right"]].set_visible(False)


def _rows_figure(
    table: pd.DataFrame, titles: Sequence[str]
) -> tuple[Figure, Sequence[Axes], list[str]]:
    """Panels side by side whose rows are the data sets and depths, and the rows' names."""
    names = list(dict.fromkeys(_place(row, table) for row in table.to_dict("records")))
    width = 7.0 if len(titles) == 1 else min(2.1 * len(titles) + 1.6, 16.0)
    figure = _figure((width, 0.42 * len(names) + 1.5))
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title, fontsize="medium")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=4)
        ax.grid(axis="y", color="#EEEEEE")
        ax.spines[["top", "right"]].set_visible(False)
    return figure, panels, names


def _by_model(
    table: pd.DataFrame, names: Sequence[str]
) -> list[tuple[tuple[str, list[float]], pd.DataFrame]]:
    """For each model its rows and the heights to draw them at, a little below the one before."""
    found = []
    models = [model for model in PRINTED_NAMES if model in set(table["model"])]
    for index, model in enumerate(models):
        rows = select(table, model=model)
        shift = 0.6 * (index / max(len(models) - 1, 1) - 0.5)
        heights = [names.index(_place(row, table)) + shift for row in rows.to_dict("records")]
        found.append(((model, heights), rows))
    return found


def _place(row: dict[str, Any], table: pd.DataFrame) -> str:
    """A row's data set and depth; its configuration, too, where one place has several."""
    text = f"{row['dataset']}, depth {row['depth']}"
    there = select(table, dataset=row["dataset"], depth=row["depth"])
    several = there["configuration"].nunique() > 1
    return f"{text} ({row['configuration']})" if several else text


def _rows_of(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    chosen = select(table, metric=metric)
    if chosen.empty:
        raise ValueError(f"metric must be one of the table's, got {metric!r}, which has no row")
    return chosen


def _figure(size: tuple[float, float]) -> Figure:
    return import_optional("matplotlib.figure", "cli").Figure(
        figsize=size, dpi=120, layout="constrained"
    )


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Name each kind of point once, above the panels."""
    named: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside upper center",
        ncols=min(len(named), 4),
        frameon=False,
        fontsize="small",
    )
