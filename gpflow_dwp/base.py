"""Types that the whole package shares: what flows between layers.

Letters (also in every shape comment and shape check of the package):

====  ===========================================================================
M     inducing points
N     data points of a batch ("targets")
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
    """The blocks of a covariance or Gram matrix that concern N targets.

    The inducing block is drawn first, once for all targets, and travels on its own. Targets are
    drawn each by itself, or all jointly. Where an output layer has a kernel for each of L
    functions, their axis comes behind that of S.

    :param it: Inducing by target, [S, M, N].
    :param tt: Target by target: of each by itself, [S, N], or jointly, [S, N, N].
    :param features: Of a Gram matrix: F_t, [S, N, R], where ``it`` is F_i F_tᵀ. None if there are
        none.
    """

    it: tf.Tensor
    tt: tf.Tensor
    features: tf.Tensor | None = None

    @property
    def are_single(self) -> bool:
        """Whether each target is drawn by itself."""
        return bool(self.tt.shape.rank < self.it.shape.rank)

    @property
    def diagonal(self) -> tf.Tensor:
        """Each target with itself, [S, N]."""
        return self.tt if self.are_single else tf.linalg.diag_part(self.tt)

    def inner_products(self, rows: tf.Tensor) -> tf.Tensor:
        """Products of rows of targets, [S, N, P], as ``tt`` has them."""
        if self.are_single:
            # Without keepdims the gradient puts a shape together on a GPU, and the host waits.
            return tf.squeeze(tf.reduce_sum(tf.square(rows), axis=-1, keepdims=True), -1)
        return tf.matmul(rows, rows, transpose_b=True)


def sizes(tensor: tf.Tensor) -> list[Any]:
    """Return the sizes of a tensor's axes, as integers where a graph need not work them out.

    :param tensor: Of known rank.
    """
    known = tensor.shape.as_list()
    if None not in known:
        return known
    found = tf.unstack(tf.shape(tensor))
    return [size if size is not None else found[axis] for axis, size in enumerate(known)]
