"""What all figures share: colours, axes, checked vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREY",
    "ORANGE",
    "Array",
    "axes_or_new",
    "check_vectors",
    "named",
    "new_figure",
]

Array = npt.NDArray[np.float64]

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
BLUE, ORANGE, GREY, BLACK = "#0072B2", "#D55E00", "#8A8A8A", "#222222"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure that pyplot does not know of."""
    return import_optional("matplotlib.figure", "cli").Figure(
        figsize=size, dpi=120, layout="constrained"
    )


def axes_or_new(ax: Axes | None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """The axes that were given, or those of a new figure."""
    return new_figure(size).subplots() if ax is None else ax


def named(ax: Axes, x: str, y: str) -> Axes:
    """The axes with names, and without the frame's top and right."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def check_vectors(**named: npt.ArrayLike) -> list[Array]:
    """Vectors of one length, from [N] or [N, 1]."""
    arrays = [np.asarray(values, np.float64) for values in named.values()]
    arrays = [a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in arrays]
    if any(a.ndim != 1 for a in arrays) or len({len(a) for a in arrays}) > 1 or not len(arrays[0]):
        shapes = ", ".join(f"{k} {list(a.shape)}" for k, a in zip(named, arrays, strict=True))
        raise ValueError(f"expected vectors of one length, at least 1, got {shapes}")
    return arrays
