"""The nearest of many rows, by Euclidean distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from scipy.spatial import cKDTree

from gpflow_dwp.base import Array

__all__ = [
    "INFINITE",
    "Index",
    "Trees",
    "nearest",
    "nearest_before",
    "nearest_in_graph",
    "nearest_others",
]

# Rows whose distances are in memory at once.
_BLOCK = 4_096

INFINITE = 1e30
"""The variance of noise that hides all, also in the last digit, as of neighbours there are not."""

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
    return _nearest_others(cKDTree(rows), np.arange(len(rows)), rows, chosen, size)


def _nearest_others(tree: cKDTree, places: Index, rows: Array, chosen: Index, size: int) -> Index:
    """As above, of rows that are at some places among all."""
    _, found = tree.query(rows[chosen], np.arange(1, size + 2))
    found = places[found]
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


class Trees:
    """Rows of several draws, to search again and again outside of compiled functions' graphs.

    :param rows: [S, N, R].
    :param counts: Which of them are searched, [N].
    """

    def __init__(self, rows: Array, counts: npt.NDArray[np.bool_]) -> None:
        self._rows, self._places = rows, np.flatnonzero(counts)
        self._trees = [cKDTree(each[counts]) for each in rows]

    def nearest_others(self, rows: Index, size: int) -> Index:
        """Indices of the nearest other rows of some rows, by each draw, [S, B, size]."""
        size, pairs = min(size, len(self._places) - 1), zip(self._trees, self._rows, strict=True)
        return np.stack(
            [_nearest_others(tree, self._places, each, rows, size) for tree, each in pairs]
        )

    def nearest(self, points: tf.Tensor, size: int) -> tf.Tensor:
        """Indices of the nearest rows of each draw's points, [S, B, size] of [S, B, R]."""
        order = np.arange(1, min(size, len(self._places)) + 1)

        def search(points: Array) -> Index:
            pairs = zip(self._trees, points, strict=True)
            return self._places[np.stack([tree.query(each, order)[1] for tree, each in pairs])]

        found = tf.numpy_function(search, [points], tf.int64)
        return tf.ensure_shape(found, [*points.shape[:2], len(order)])


def nearest_in_graph(
    rows: tf.Tensor,
    points: tf.Tensor,
    size: int,
    ranks: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Find nearest rows by TensorFlow's operations alone, a block of rows after the other.

    :param rows: Of S draws, [S, N, R].
    :param points: [S, B, R].
    :param size: How many.
    :param ranks: Of rows, [N], and points, [B]: only rows of less than a point's are its
        neighbours. None for all.
    :return: Their indices, nearest first, and whether they are, [S, B, size]: there may be too few.
    """
    num_rows, dtype = tf.shape(rows)[1], rows.dtype
    shape = tf.concat([tf.shape(points)[:2], [size]], axis=0)
    norms = tf.reduce_sum(tf.square(points), axis=-1, keepdims=True)

    def body(start: tf.Tensor, best: tf.Tensor, index: tf.Tensor) -> tuple[tf.Tensor, ...]:
        block = rows[:, start : start + _BLOCK]
        distances = norms - 2.0 * tf.matmul(points, block, transpose_b=True)
        distances += tf.reduce_sum(tf.square(block), axis=-1)[:, None]
        distances = tf.maximum(distances, tf.zeros([], dtype))
        if ranks is not None:
            precedes = ranks[0][start : start + _BLOCK] < ranks[1][:, None]
            distances = tf.where(precedes, distances, tf.constant(np.inf, dtype))
        numbers = tf.range(start, tf.minimum(start + _BLOCK, num_rows))
        numbers = tf.broadcast_to(numbers, tf.shape(distances))
        joined = tf.concat([best, distances], axis=-1), tf.concat([index, numbers], axis=-1)
        negative, places = tf.math.top_k(-joined[0], size)
        return start + _BLOCK, -negative, tf.gather(joined[1], places, batch_dims=2)

    state = tf.constant(0), tf.fill(shape, tf.constant(np.inf, dtype)), tf.zeros(shape, tf.int32)
    known = [*points.shape[:2], size]
    shapes = tf.TensorShape([]), tf.TensorShape(known), tf.TensorShape(known)
    _, distances, index = tf.while_loop(
        lambda start, *_: start < num_rows, body, state, shape_invariants=shapes
    )
    return tf.cast(index, tf.int64), tf.math.is_finite(distances)
