"""Gram matrices: what representation a model learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.evaluation.plots._drawing import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_gram_matrices"]


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
        figure = new_figure((2.8 * len(matrices) + 1.0, 3.3))
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
