"""Types that the whole package shares: what flows between layers.

Letters (also in every shape comment and shape check of the package):

====  ===========================================================================
M     inducing points
N     data points of a batch ("targets"), in G groups of K
S     joint draws of all layers' Gram matrices; a leading axis of length 1 stands
      for what is the same in all draws
R     rank of a sampled Gram matrix, ``min(df, M)``
D, Q  input columns, output columns
====  ===========================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import RegressionData, TensorData

__all__ = ["Array", "Seed", "TargetBlocks", "TrainingData", "sizes"]

Array = npt.NDArray[np.float64]
"""A NumPy array in double precision."""

Seed = tf.Tensor
"""A stateless seed: an integer tensor of shape [2], as ``tf.random.stateless_*`` take it."""


TrainingData = RegressionData | tuple[TensorData, TensorData, TensorData]
"""X [N, D] and Y [N, P]; or three, with weights [N] that say how often each row counts."""


class TargetBlocks(NamedTuple):
    """The blocks of a covariance or Gram matrix that concern targets.

    The inducing block is drawn first, once for all targets, and travels on its own.

    Targets come in G groups of K, which are drawn jointly, each group on its own: K = 1 for targets
    by themselves, G = 1 for all together, and K copies of each of G data in between. Where an
    output layer has a kernel for each of L functions, their axis comes behind that of S.

    :param it: Inducing by target, [S, M, N], where N = G K.
    :param tt: Target by target within each group, [S, G, K, K].
    :param features: Of a Gram matrix: F_t, [S, N, R], where ``it`` is F_i F_tᵀ. None if there are
        none.
    """

    it: tf.Tensor
    tt: tf.Tensor
    features: tf.Tensor | None = None

    @property
    def are_single(self) -> bool:
        """Whether K is known to be 1."""
        return bool(self.tt.shape[-1] == 1)

    @property
    def diagonal(self) -> tf.Tensor:
        """The diagonals of all groups, [S, N]."""
        if self.are_single:
            return tf.squeeze(self.tt, [-2, -1])
        diagonal = tf.linalg.diag_part(self.tt)
        return tf.reshape(diagonal, [*sizes(diagonal)[:-2], -1])

    def grouped(self, rows: tf.Tensor) -> tf.Tensor:
        """Rows of targets, [S, N, P], as [S, G, K, P]."""
        (S, _, P), (_, G, K, _) = sizes(rows), sizes(self.tt)
        return tf.reshape(rows, [S, G, K, P])

    def inner_products(self, rows: tf.Tensor) -> tf.Tensor:
        """Products of rows of targets, [S, N, P], within groups, [S, G, K, K]."""
        if self.are_single:
            # Without keepdims the gradient puts a shape together on a GPU, and the host waits.
            return tf.expand_dims(tf.reduce_sum(tf.square(rows), axis=-1, keepdims=True), -1)
        groups = self.grouped(rows)
        return tf.matmul(groups, groups, transpose_b=True)


def sizes(tensor: tf.Tensor) -> list[Any]:
    """Return the sizes of a tensor's axes, as integers where a graph need not work them out.

    :param tensor: Of known rank.
    """
    known = tensor.shape.as_list()
    if None not in known:
        return known
    found = tf.unstack(tf.shape(tensor))
    return [size if size is not None else found[axis] for axis, size in enumerate(known)]
