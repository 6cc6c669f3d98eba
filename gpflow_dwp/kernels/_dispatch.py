"""What a kernel is evaluated on, and the dispatcher that knows how.

A kernel is registered once, as a function ``(kernel, entries) -> values`` that works entry by
entry; it serves matrices, cross-covariances and diagonals alike.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

import tensorflow as tf
from gpflow.utilities import Dispatcher

__all__ = ["Coinciding", "Entries", "gram_kernel"]


class Coinciding(Enum):
    """Which entries pair a point with itself."""

    NONE = auto()
    """None: rows and columns are different points."""
    DIAGONAL = auto()
    """Those on the diagonal of the last two axes: rows and columns are the same points."""
    ALL = auto()
    """All of them: the diagonal of a matrix was taken before."""


class Entries(NamedTuple):
    """Pairs of points, through their inner products. The three tensors broadcast together.

    :param product: Inner product of the row's and the column's point, [..., M, N] or [..., N].
    :param row_norms: Squared norm of the row's point, [..., M, 1] or [..., N].
    :param column_norms: Squared norm of the column's point, [..., 1, N] or [..., N].
    :param coinciding: Which entries pair a point with itself.
    :param features: Features of rows and columns, [..., M, R] and [..., N, R], whose products
        ``product`` holds; None where they are not known. A formula that uses them alone leaves
        ``product`` to the graph compiler, which takes it away.
    """

    product: tf.Tensor
    row_norms: tf.Tensor
    column_norms: tf.Tensor
    coinciding: Coinciding
    features: tuple[tf.Tensor, tf.Tensor] | None = None


gram_kernel = Dispatcher("gram_kernel")
"""From a kernel and its :class:`Entries` to values that broadcast to the shape of the entries."""
