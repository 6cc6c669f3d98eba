"""The nearest of many rows, by Euclidean distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from gpflow_dwp.base import Array

__all__ = ["Index", "nearest", "nearest_before", "nearest_others"]

Index = npt.NDArray[np.int64]
"""Indices of rows; -1 stands for none."""


def nearest(rows: Array, points: Array, size: int) -> Index:
    """Return the nearest rows of each point, nearest first.

    :param rows: [N, D].
    :param points: [B, D].
    :param size: How many, at most N.
    :return: [B, size].
    """
    _, found = cKDTree(rows).query(points, np.arange(1, size + 1))
    return np.asarray(found, np.int64)


def nearest_others(rows: Array, chosen: Index, size: int) -> Index:
    """Return the nearest rows of some of them, which are not their own.

    :param rows: [N, D].
    :param chosen: Indices of rows, [B].
    :param size: How many, below N.
    :return: [B, size].
    """
    found = nearest(rows, rows[chosen], size + 1)
    is_other = found != chosen[:, None]
    is_other[is_other.all(axis=1), -1] = False  # of many equal rows its own may not be among them
    return found[is_other].reshape(len(chosen), size)


def nearest_before(rows: Array, chosen: Index, size: int) -> Index:
    """Return the nearest rows of some of them among those that precede them, in their order.

    Rows from 2ˡ to 2ˡ⁺¹ look among the first 2ˡ⁺¹, of which at least half precede them.

    :param rows: In an order, such as a random one, [N, D].
    :param chosen: Indices of rows, [B].
    :param size: How many; where fewer rows precede one, the rest is -1.
    :return: [B, size].
    """
    found = np.full((len(chosen), size), -1)
    levels = np.log2(np.maximum(chosen, 1)).astype(int)
    for level in np.unique(levels):
        among = rows[: 2 ** (level + 1)]
        tree, waiting = cKDTree(among), np.flatnonzero(levels == level)
        count = 2 * size + 16
        while len(waiting):
            count = min(count, len(among))
            own = chosen[waiting, None]
            _, near = tree.query(rows[own[:, 0]], np.arange(1, count + 1))
            precedes = near < own
            order = np.argsort(~precedes, axis=1, kind="stable")[:, :size]
            near, precedes = (np.take_along_axis(part, order, 1) for part in (near, precedes))
            found[waiting, : order.shape[1]] = np.where(precedes, near, -1)
            lacking = precedes.sum(axis=1) < np.minimum(size, own[:, 0])
            waiting, count = waiting[lacking], 2 * count
    return found
