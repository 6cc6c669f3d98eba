"""Figures of predictions and their uncertainty, against what was observed.

Each function draws on the axes that it is given, or on new ones, and returns them; pyplot's global
state is not touched. ``axes.figure.savefig(path)`` writes a figure. Vectors may be [N] or [N, 1];
a :class:`ValueError` says what does not fit together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian
from scipy.stats import binom

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_instance, check_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "axes_or_new",
    "legend_below",
    "named",
    "new_figure",
    "plot_calibration",
    "plot_functions_1d",
    "plot_model_1d",
    "plot_predictions",
    "vectors",
]

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
BLUE, ORANGE, GREY, BLACK = "#0072B2", "#D55E00", "#8A8A8A", "#222222"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHED: dict[str, Any] = {"color": BLACK, "linewidth": 1, "linestyle": "--"}


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure that pyplot does not know of."""
    figure = import_optional("matplotlib.figure", "cli").Figure
    return figure(figsize=size, dpi=120, layout="constrained")


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """The axes that were given, or those of a new figure."""
    return new_figure(size).subplots() if ax is None else ax


def named(ax: Axes, x: str, y: str) -> Axes:
    """The axes with names, and without the frame's top and right."""
    ax.set(xlabel=x, ylabel=y)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_below(ax: Axes, **options: Any) -> None:
    """A legend that hides no data: below all else, and where there are other axes below these."""
    options = {"ncols": 2, "frameon": False, **options}
    if len(ax.figure.axes) == 1 and ax.figure.get_layout_engine() is not None:
        handles, labels = ax.get_legend_handles_labels()
        ax.figure.legend(handles, labels, loc="outside lower center", **options)
    else:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), **options)


def vectors(**named: npt.ArrayLike) -> list[Array]:
    """Vectors of one length, from [N] or [N, 1]."""
    arrays = [np.asarray(values, np.float64) for values in named.values()]
    arrays = [a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in arrays]
    if any(a.ndim != 1 for a in arrays) or len({len(a) for a in arrays}) > 1 or not len(arrays[0]):
        shapes = ", ".join(f"{k} {list(a.shape)}" for k, a in zip(named, arrays, strict=True))
        raise ValueError(f"expected vectors of one length, at least 1, got {shapes}")
    return arrays


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

    Both axes have the same limits; intervals that reach beyond them are cut. The title tells the
    root mean squared error.

    :param y_true: Targets in raw units, [N].
    :param mean: Predicted means, [N].
    :param lower: Lower ends of the intervals, [N].
    :param upper: Upper ends of the intervals, [N].
    :param target: Name of the target, with its unit.
    :param interval: Name of an interval.
    """
    truth, centre, low, high = vectors(y_true=y_true, mean=mean, lower=lower, upper=upper)
    ax = axes_or_new(ax, (4.8, 5.4))
    inside = (low <= truth) & (truth <= high)
    crowded = float(np.clip(7.0 / np.sqrt(len(truth)), 0.2, 0.8))
    for chosen, colour, where in ((inside, BLUE, "inside"), (~inside, ORANGE, "outside")):
        share = f"truth {where} ({np.mean(chosen):.1%})"
        x, y, size = truth[chosen], centre[chosen], 3.0 + 3.0 * crowded
        ax.vlines(x, low[chosen], high[chosen], color=colour, alpha=crowded, linewidth=1)
        ax.plot(x, y, ".", color=colour, markersize=size, label=share)
    start = (truth[0], truth[0])
    ax.axline(start, slope=1.0, label="predicted = observed", zorder=3, **DASHED)
    shown = np.concatenate([truth, centre])
    margin = 0.05 * float(np.ptp(shown)) or 1.0
    error = np.sqrt(np.mean(np.square(truth - centre)))
    limits = (shown.min() - margin, shown.max() + margin)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.set_title(f"RMSE {error:.4g}, {interval}s", fontsize="medium")
    legend_below(ax)
    return named(ax, f"observed {target}", f"predicted {target}")


def plot_calibration(
    pit: npt.ArrayLike, ax: Axes | None = None, *, confidence: float = 0.95
) -> Axes:
    """Share of targets within central intervals, against the share that there should be.

    Below the diagonal the model is too sure of itself.

    :param pit: Predictive distribution function at the observed targets, in [0, 1], [N].
    :param confidence: Probability with which, at each level, a calibrated model's curve stays in
        the band.
    """
    (values,) = vectors(pit=pit)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("pit must lie in [0, 1]")
    ax = axes_or_new(ax, (4.8, 5.4))
    nominal = np.linspace(0.0, 1.0, 101)
    centrality = np.sort(np.abs(2.0 * values - 1.0))
    observed = np.searchsorted(centrality, nominal, side="right") / len(values)
    low, high = (end / len(values) for end in binom.interval(confidence, len(values), nominal))
    band = f"pointwise {confidence:.0%} band if calibrated"
    ax.fill_between(nominal, low, high, color=GREY, alpha=0.25, linewidth=0, label=band)
    ax.plot([0, 1], [0, 1], label="calibrated", **DASHED)
    ax.plot(nominal, observed, color=BLUE, label=f"model, {len(values)} points")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    legend_below(ax)
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
    interval: str = "pointwise 95% interval",
    names: tuple[str, str] = ("x", "y"),
) -> Axes:
    """Data on a line, with predicted mean, interval and draws of functions.

    :param X: Inputs of the data, [N].
    :param Y: Targets of the data, [N].
    :param grid: Inputs of the predictions, increasing, [G].
    :param samples: Draws of functions, [S, G]; S may be 0.
    :param mean: Predicted mean, [G].
    :param lower: Lower end of the interval, [G].
    :param upper: Upper end of the interval, [G].
    :param interval: Name of the interval.
    :param names: Of input and target, with their units.
    """
    x, y = vectors(X=X, Y=Y)
    points, centre, low, high = vectors(grid=grid, mean=mean, lower=lower, upper=upper)
    draws = np.asarray(samples, np.float64)
    if draws.ndim != 2 or draws.shape[1] != len(points):
        raise ValueError(f"samples must have shape [S, {len(points)}], got {list(draws.shape)}")
    ax = axes_or_new(ax, (7.0, 4.0))
    ax.fill_between(points, low, high, color=BLUE, alpha=0.18, linewidth=0, label=interval)
    for i, draw in enumerate(draws):
        label = "draws of the function" if i == 0 else None
        ax.plot(points, draw, color=ORANGE, alpha=0.55, linewidth=0.8, label=label)
    ax.plot(points, centre, color=BLUE, linewidth=1.8, label="mean")
    ax.plot(x, y, ".", color=BLACK, markersize=5, label="data", zorder=3)
    ax.set_xlim(points.min(), points.max())
    legend_below(ax, ncols=4)
    return named(ax, *names)


def plot_model_1d(
    model: VariationalModel,
    data: RegressionData,
    ax: Axes | None = None,
    *,
    num_functions: int = 8,
    coverage: float = 0.95,
    grid: npt.ArrayLike | None = None,
    seed: int = 0,
    names: tuple[str, str] = ("x", "y"),
) -> Axes:
    """A model of one input: its mean, an interval of observations, and draws of functions.

    Functions of a model of warped observations are brought back to the observations' scale.

    :param model: A model with one input and one output, with Gaussian noise.
    :param data: X [N, 1] and Y [N, 1], in the model's units.
    :param num_functions: How many functions are drawn; may be 0.
    :param coverage: Probability of the interval, between 0 and 1.
    :param grid: Where to predict, increasing, [G]; None for 200 points a tenth beyond the data.
    :param seed: Seed of the draws.
    :param names: Of input and target, with their units.
    """
    check_integers(at_least=0, num_functions=num_functions)
    check_instance(VariationalModel, model=model)
    sizes = (model.num_inputs, model.num_outputs)
    if sizes != (1, 1):
        raise ValueError("model must have one input and one output, got {} and {}.".format(*sizes))
    check_instance(Gaussian, likelihood=model.likelihood)
    X, Y = (np.asarray(part, np.float64) for part in data)
    if grid is None:
        margin = 0.1 * np.ptp(X)
        grid = np.linspace(X.min() - margin, X.max() + margin, 200)
    points = np.asarray(grid, np.float64).reshape(-1, 1)
    distribution = PredictiveDistribution.of(model.posterior(seed=seed), points)
    lower, upper = distribution.quantile([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])[..., 0]
    functions = np.zeros((0, len(points)))
    if num_functions:
        draws = model.predict_f_samples(points, num_functions, seed=seed)
        warp = warp_of(model.likelihood)
        functions = (draws if warp is None else warp.inverse(draws)).numpy()[..., 0]
    interval = f"pointwise {coverage:.0%} interval"
    parts = (X, Y, points, functions, distribution.mean()[:, 0], lower, upper)
    return plot_functions_1d(*parts, ax, interval=interval, names=names)
