"""What all figures share: colours, axes, checked vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
