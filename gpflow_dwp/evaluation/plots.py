"""Figures: each function draws on the axes it is given, or on new ones, and returns them.

No global state of pyplot is touched: ``axes.figure.savefig(path)`` writes a figure, and a notebook
shows ``axes.figure``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "plot_calibration",
    "plot_functions_1d",
    "plot_gram_matrices",
    "plot_learning_curve",
    "plot_predictions",
]

Array = npt.NDArray[np.float64]

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
_BLUE, _ORANGE, _GREY, _BLACK = "#0072B2", "#D55E00", "#8A8A8A", "#222222"
_MOVING_AVERAGE_FROM = 100  # recorded steps; below, the curve itself is clear enough


def plot_learning_curve(
    steps: npt.ArrayLike,
    elbo: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    label: str = "ELBO (nats)",
) -> Axes:
    """The bound over training. The axis shows where it ends, not the depth from which it came.

    :param steps: Steps at which the bound was recorded, increasing, [K].
    :param elbo: Bound, [K].
    :param ax: Axes to draw on; by default those of a new figure.
    :param label: What the bound is and its unit, such as "ELBO per datum (nats)".
    :return: The axes.
    :raises ValueError: If the two are not vectors of one length.
    """
    x, y = _vectors(steps=steps, elbo=elbo)
    ax = _axes(ax)
    window = len(x) // 50
    if len(x) >= _MOVING_AVERAGE_FROM:
        ax.plot(x, y, color=_BLUE, alpha=0.3, linewidth=0.8, label="each record")
        smooth = np.convolve(y, np.full(window, 1.0 / window), mode="valid")
        middle = x[window // 2 : window // 2 + len(smooth)]
        ax.plot(middle, smooth, color=_BLUE, label=f"mean of {window} records")
        ax.legend(loc="lower right", frameon=False)
    else:
        ax.plot(x, y, color=_BLUE, marker=".")
    late = y[len(y) // 10 :][np.isfinite(y[len(y) // 10 :])]
    if len(late) > 1 and late.max() > late.min():
        margin = 0.05 * (late.max() - late.min())
        ax.set_ylim(late.min() - margin, max(late.max(), np.nanmax(y[np.isfinite(y)])) + margin)
    ax.margins(x=0.02)
    return _named(ax, "training step", label)


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
    truth, centre, low, high = _vectors(y_true=y_true, mean=mean, lower=lower, upper=upper)
    ax = _axes(ax, size=(5.2, 4.8))
    inside = (low <= truth) & (truth <= high)
    crowded = float(np.clip(7.0 / np.sqrt(len(truth)), 0.2, 0.8))
    for chosen, colour, where in ((inside, _BLUE, "inside"), (~inside, _ORANGE, "outside")):
        share = f"truth {where} ({np.mean(chosen):.1%})"
        ax.vlines(
            truth[chosen], low[chosen], high[chosen], color=colour, alpha=crowded, linewidth=1
        )
        size = 3.0 + 3.0 * crowded
        ax.plot(truth[chosen], centre[chosen], ".", color=colour, markersize=size, label=share)
    diagonal: dict[str, Any] = {"color": _BLACK, "linewidth": 1, "linestyle": "--", "zorder": 3}
    ax.axline((truth[0], truth[0]), slope=1.0, label="predicted = observed", **diagonal)
    ax.legend(loc="upper left", frameon=False, title=interval, alignment="left")
    return _named(ax, f"observed {target}", f"predicted {target}")


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
    (values,) = _vectors(pit=pit)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("pit must lie in [0, 1]")
    ax = _axes(ax, size=(4.8, 4.8))
    nominal = np.linspace(0.0, 1.0, 101)
    centrality = np.sort(np.abs(2.0 * values - 1.0))
    observed = np.searchsorted(centrality, nominal, side="right") / len(values)
    tail = 0.5 * (1.0 - confidence)
    low, high = (binom.ppf(q, len(values), nominal) / len(values) for q in (tail, 1.0 - tail))
    band = f"{confidence:.0%} band if calibrated"
    ax.fill_between(nominal, low, high, color=_GREY, alpha=0.25, linewidth=0, label=band)
    ax.plot([0, 1], [0, 1], color=_BLACK, linewidth=1, linestyle="--", label="calibrated")
    ax.plot(nominal, observed, color=_BLUE, label=f"model, {len(values)} points")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(loc="upper left", frameon=False)
    return _named(ax, "nominal coverage of central interval", "observed coverage")


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
    x, y = _vectors(X=X, Y=Y)
    points, centre, low, high = _vectors(grid=grid, mean=mean, lower=lower, upper=upper)
    draws = np.asarray(samples, np.float64)
    if draws.ndim != 2 or draws.shape[1] != len(points):
        raise ValueError(f"samples must have shape [S, {len(points)}], got {list(draws.shape)}")
    ax = _axes(ax, size=(7.0, 4.0))
    ax.fill_between(points, low, high, color=_BLUE, alpha=0.18, linewidth=0, label=interval)
    for i, draw in enumerate(draws):
        label = "draws of the function" if i == 0 else None
        ax.plot(points, draw, color=_ORANGE, alpha=0.55, linewidth=0.8, label=label)
    ax.plot(points, centre, color=_BLUE, linewidth=1.8, label="mean")
    ax.plot(x, y, ".", color=_BLACK, markersize=5, label="data", zorder=3)
    ax.set_xlim(points.min(), points.max())
    ax.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")
    return _named(ax, "x", "y")


def plot_gram_matrices(
    grams: Sequence[npt.ArrayLike],
    titles: Sequence[str],
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Gram matrices side by side, on one colour scale.

    :param grams: Matrices, each [M, M].
    :param titles: A title for each.
    :param axes: Axes to draw on, one for each matrix; by default those of a new figure.
    :return: The axes of the matrices.
    :raises ValueError: If there is no matrix, one is not square, or the numbers of matrices,
        titles and axes differ.
    """
    matrices = [np.asarray(gram, np.float64) for gram in grams]
    given = len(matrices) if axes is None else len(axes)
    if not matrices or not len(matrices) == len(titles) == given:
        raise ValueError(
            "there must be as many titles and axes as matrices, and at least one, got "
            f"{len(matrices)} matrices, {len(titles)} titles and {given} axes"
        )
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a Gram matrix must have shape [M, M], got {list(matrix.shape)}")
    if axes is None:
        figure = _figure((2.8 * len(matrices) + 1.0, 3.3))
        axes = list(figure.subplots(1, len(matrices), squeeze=False)[0])
    low, high = min(m.min() for m in matrices), max(m.max() for m in matrices)
    colours: dict[str, Any] = {"cmap": "viridis", "vmin": min(low, 0.0), "vmax": high}
    if low < -0.05 * high:
        bound = max(high, -low)
        colours = {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound}
    for ax, matrix, title in zip(axes, matrices, titles, strict=True):
        image = ax.imshow(matrix, interpolation="nearest", **colours)
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel("point")
        ax.locator_params(integer=True, nbins=5)
    axes[0].set_ylabel("point")
    axes[0].figure.colorbar(image, ax=list(axes), shrink=0.8, label="inner product")
    return list(axes)


def _figure(size: tuple[float, float]) -> Figure:
    return import_optional("matplotlib.figure", "cli").Figure(
        figsize=size, dpi=120, layout="constrained"
    )


def _axes(ax: Axes | None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    return _figure(size).subplots() if ax is None else ax


def _named(ax: Axes, x: str, y: str) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _vectors(**named: npt.ArrayLike) -> list[Array]:
    """Vectors of one length, from [N] or [N, 1]."""
    arrays = [np.asarray(values, np.float64) for values in named.values()]
    arrays = [a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in arrays]
    if any(a.ndim != 1 for a in arrays) or len({len(a) for a in arrays}) > 1 or not len(arrays[0]):
        shapes = ", ".join(f"{k} {list(a.shape)}" for k, a in zip(named, arrays, strict=True))
        raise ValueError(f"expected vectors of one length, at least 1, got {shapes}")
    return arrays
