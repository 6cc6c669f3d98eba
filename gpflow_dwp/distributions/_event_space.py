"""Bijectors from vectors of real numbers onto the supports of the distributions."""

from __future__ import annotations

from typing import Any

import tensorflow_probability as tfp

__all__ = ["fill_trapezoid"]


def fill_trapezoid(size: int, rank: int) -> Any:
    """Return a bijector onto the lower trapezoids with a positive diagonal.

    A vector of R (R + 1)/2 + (M - R) R real numbers becomes the leading triangle, the diagonal
    through softplus, and the rows below it.

    :param size: M.
    :param rank: R.
    """
    bijectors = tfp.bijectors
    triangle = bijectors.FillScaleTriL(diag_bijector=bijectors.Softplus(), diag_shift=None)
    if size == rank:
        return triangle
    below = size - rank
    entries = [rank * (rank + 1) // 2, below * rank]
    return bijectors.Chain(
        [
            bijectors.Invert(bijectors.Split([rank, below], axis=-2)),
            bijectors.JointMap([triangle, bijectors.Reshape([below, rank], [below * rank])]),
            bijectors.Split(entries),
        ],
    )
