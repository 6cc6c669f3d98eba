"""Minibatches that are a function of a seed and of how many were drawn before."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed
from gpflow_dwp.random import fold_in

__all__ = ["Minibatches"]


class Minibatches(tf.Module):
    """Draw rows without replacement within each epoch; a batch may go over into the next epoch.

    All state is in variables, so that a checkpoint holds it.

    :param data: X [N, D] and Y [N, P], and weights [N] if there are any, as tensors.
    :param batch_size: Rows of a batch, at most N.
    :param seed: Every epoch's order depends on it and on the epoch alone.
    """

    def __init__(self, data: RegressionData, batch_size: int, seed: Seed) -> None:
        super().__init__()
        self._data = tuple(data)
        self._batch_size = batch_size
        self._seed = seed
        self._num_rows = int(data[0].shape[0])
        self._position = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._order = tf.Variable(self._shuffled(tf.constant(0, tf.int64)), trainable=False)

    def __call__(self) -> RegressionData:
        """Return the next batch."""
        start = self._position.read_value()
        places = start + tf.range(self._batch_size, dtype=tf.int64)
        epochs, places = places // self._num_rows, places % self._num_rows
        before, last = tf.maximum(start - 1, 0) // self._num_rows, epochs[-1]
        old = self._order.read_value()
        new = tf.cond(last > before, lambda: self._order.assign(self._shuffled(last)), lambda: old)
        rows = tf.where(epochs == last, tf.gather(new, places), tf.gather(old, places))
        self._position.assign_add(self._batch_size)
        return tuple(tf.gather(part, rows) for part in self._data)

    def _shuffled(self, epoch: tf.Tensor) -> tf.Tensor:
        # Integers of a named algorithm are the same everywhere; ties are as good as impossible.
        keys = tf.random.stateless_uniform(
            [self._num_rows],
            fold_in(self._seed, epoch),
            minval=None,
            maxval=None,
            dtype=tf.int64,
            alg="philox",
        )
        # A GPU holds no variable of 32-bit integers.
        return tf.cast(tf.argsort(keys, direction="DESCENDING"), tf.int64)
