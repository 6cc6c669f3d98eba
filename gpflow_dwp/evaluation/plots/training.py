"""The course of training: the bound, and what each layer costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.evaluation.plots._drawing import (
    BLUE,
    COLOURS,
    GREY,
    axes_or_new,
    check_vectors,
    legend_below,
    named,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_layer_divergences", "plot_learning_curve"]

_MOVING_AVERAGE_FROM = 100  # recorded steps; below, the curve itself is clear enough


def plot_learning_curve(
    steps: npt.ArrayLike,
    elbo: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    label: str = "ELBO (nats)",
    annealing_steps: int = 0,
) -> Axes:
    """The bound over training. The axis shows where it ends, not the depth from which it came.

    :param steps: Steps at which the bound was recorded, increasing, [K].
    :param elbo: Bound of each step, [K].
    :param ax: Axes to draw on; by default those of a new figure.
    :param label: What the bound is and its unit, such as "ELBO per datum (nats)".
    :param annealing_steps: When the weight of the log ratios had grown to 1, which is marked; 0 for
        no mark.
    :return: The axes.
    :raises ValueError: If the two are not vectors of one length.
    """
    x, y = check_vectors(steps=steps, elbo=elbo)
    ax = axes_or_new(ax)
    window = len(x) // 50
    if len(x) >= _MOVING_AVERAGE_FROM:
        ax.plot(x, y, color=BLUE, alpha=0.3, linewidth=0.8, label="each record")
        smooth = np.convolve(y, np.full(window, 1.0 / window), mode="valid")
        middle = x[window // 2 : window // 2 + len(smooth)]
        ax.plot(middle, smooth, color=BLUE, label=f"mean of {window} records")
    else:
        ax.plot(x, y, color=BLUE, marker=".", label="each record")
    if 0 < annealing_steps < x[-1]:
        ax.axvline(annealing_steps, color=GREY, linestyle=":", label="annealing ends")
    legend_below(ax, ncols=3)
    late = y[len(y) // 10 :][np.isfinite(y[len(y) // 10 :])]
    if len(late) > 1 and late.max() > late.min():
        margin = 0.05 * (late.max() - late.min())
        ax.set_ylim(late.min() - margin, max(late.max(), np.nanmax(y[np.isfinite(y)])) + margin)
    ax.margins(x=0.02)
    return named(ax, "training step", label)


def plot_layer_divergences(
    log_ratios: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
) -> Axes:
    """What each layer's posterior costs over training: its divergence from the prior.

    A layer whose curve falls to zero and stays there has fallen back to its prior, and does
    nothing.

    :param log_ratios: Each layer's log P - log Q at each step, bottom first, in nats, [T, L], such
        as ``TrainingHistory.log_ratios``.
    :param ax: Axes to draw on; by default those of a new figure.
    :param names: Names of the layers; None for their numbers.
    :return: The axes; their scale is logarithmic where all that is drawn is positive.
    :raises ValueError: If ``log_ratios`` is not [T, L], or there are not L names.
    """
    divergences = -np.asarray(log_ratios, np.float64)
    if divergences.ndim != 2 or not divergences.size:
        raise ValueError(f"log_ratios must have shape [T, L], got {list(divergences.shape)}.")
    num_steps, num_layers = divergences.shape
    labels = [f"layer {i + 1}" for i in range(num_layers)] if names is None else list(names)
    if len(labels) != num_layers:
        raise ValueError(f"names must name {num_layers} layers, got {len(labels)} names.")
    ax = axes_or_new(ax)
    window = max(1, num_steps // 50) if num_steps >= _MOVING_AVERAGE_FROM else 1
    steps = np.arange(1, num_steps + 1)[window // 2 :]
    positive = True
    for index, label in enumerate(labels):
        kernel = np.full(window, 1.0 / window)
        smooth = np.convolve(divergences[:, index], kernel, mode="valid")
        positive &= bool((smooth > 0.0).all())
        ax.plot(steps[: len(smooth)], smooth, color=COLOURS[index % len(COLOURS)], label=label)
    if positive:
        ax.set_yscale("log")
    ax.margins(x=0.02)
    legend_below(ax, ncols=min(4, num_layers))
    return named(ax, "training step", "divergence from the prior (nats)")
