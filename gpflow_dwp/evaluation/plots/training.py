"""The course of training: the bound, and what each layer costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.evaluation.plots._drawing import BLUE, axes_or_new, check_vectors, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_learning_curve"]

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
    x, y = check_vectors(steps=steps, elbo=elbo)
    ax = axes_or_new(ax)
    window = len(x) // 50
    if len(x) >= _MOVING_AVERAGE_FROM:
        ax.plot(x, y, color=BLUE, alpha=0.3, linewidth=0.8, label="each record")
        smooth = np.convolve(y, np.full(window, 1.0 / window), mode="valid")
        middle = x[window // 2 : window // 2 + len(smooth)]
        ax.plot(middle, smooth, color=BLUE, label=f"mean of {window} records")
        ax.legend(loc="lower right", frameon=False)
    else:
        ax.plot(x, y, color=BLUE, marker=".")
    late = y[len(y) // 10 :][np.isfinite(y[len(y) // 10 :])]
    if len(late) > 1 and late.max() > late.min():
        margin = 0.05 * (late.max() - late.min())
        ax.set_ylim(late.min() - margin, max(late.max(), np.nanmax(y[np.isfinite(y)])) + margin)
    ax.margins(x=0.02)
    return named(ax, "training step", label)
