"""What predictions from the nearest of an output layer's rows condition on."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from gpflow_dwp.linalg import Factorised
from gpflow_dwp.neighbours import Trees

__all__ = ["InducingRows", "RowsOfKernels", "RowsPosterior"]


class RowsPosterior(NamedTuple):
    """What functions of one kernel condition on, given draws of the layers below.

    :param features: Of the rows, [S, N, R]; inputs without layers below.
    :param targets: Observations on the scale of f, less the mean function, [N, Q] or [S, N, Q].
    :param noise: Variance of each row's noise, [N]; of :data:`INFINITE` noise are rows that are no
        neighbours, as they count for nothing.
    :param ranks: Where the rows are in the ordering, [N]; infinite where they are no neighbours.
    :param log_ratio: 0, as the functions are integrated out, [1].
    :param trees: To search rows with, where they are no symbols.
    :param inducing: What inducing points tell of all functions; None for nothing.
    """

    features: tf.Tensor
    targets: tf.Tensor
    noise: tf.Tensor
    ranks: tf.Tensor
    log_ratio: tf.Tensor
    trees: Trees | None
    inducing: InducingRows | None = None


class RowsOfKernels(NamedTuple):
    """What all functions condition on.

    :param parts: Of each function that has a kernel of its own, [Q]; else one.
    """

    parts: list[RowsPosterior]

    @property
    def log_ratio(self) -> tf.Tensor:
        """0, as of its parts, [1]."""
        return self.parts[0].log_ratio


class InducingRows(NamedTuple):
    """Whitened functions at M inducing points, v = L⁻¹ u, given all rows.

    :param points: Features of the inducing points, [S, M, R].
    :param tril: L, for the covariance of u, [S, M, M].
    :param rows: What v counts at the rows, Φ = Cᵀ L⁻ᵀ, [S, N, M].
    :param variance: Of the rows' observations given v, [S, N].
    :param mean: Of v, [S, M, Q].
    :param precision: Of v, I + Φᵀ D⁻¹ Φ, and its Cholesky factor, [S, M, M].
    """

    points: tf.Tensor
    tril: tf.Tensor
    rows: tf.Tensor
    variance: tf.Tensor
    mean: tf.Tensor
    precision: Factorised
