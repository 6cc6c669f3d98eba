"""Minibatches that are a function of a seed and of how many were drawn before."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed
from gpflow_dwp.random import fold_in

__all__ = ["Minibatches", "as_variables"]


class Minibatches(tf.Module):
    """Draw rows without replacement within each epoch; a batch may go over into the next epoch.

    All state is in variables, so that a checkpoint holds it.

    :param data: X [N, D] and Y [N, P], and weights [N] if there are any, as tensors.
    :param batch_size: Rows of a batch, at most N.
    :param seed: Every epoch's order depends on it and on the epoch alone.
    """

    def __init__(self, data: RegressionData, batch_size: int, seed: Seed) -> None:
        super().__init__()
        self._batch_size = batch_size
        # In a checkpoint there is the place in the data, not the data. GPUs hold no int32.
        self._inputs = _Untracked(
            [*as_variables(data), tf.Variable(tf.cast(seed, tf.int64), trainable=False)]
        )
        self._position = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._order = _any_length(self._shuffled(tf.constant(0, tf.int64)))

    @property
    def key(self) -> Hashable:
        """What a function that draws batches depends on, apart from the resources."""
        columns = (tuple(variable.shape[1:]) for variable in self._inputs.variables[:-1])
        return "minibatches", self._batch_size, *columns

    @property
    def resources(self) -> list[tf.Variable]:
        """The variables of data, seed and place."""
        return [*self._inputs.variables, self._position, self._order]

    def __call__(self) -> RegressionData:
        """Return the next batch."""
        *data, _ = self._inputs.variables
        num_rows = tf.shape(data[0], tf.int64)[0]
        start = self._position.read_value()
        places = start + tf.range(self._batch_size, dtype=tf.int64)
        epochs, places = places // num_rows, places % num_rows
        before, last = tf.maximum(start - 1, 0) // num_rows, epochs[-1]
        old = self._order.read_value()
        new = tf.cond(last > before, lambda: self._order.assign(self._shuffled(last)), lambda: old)
        rows = tf.where(epochs == last, tf.gather(new, places), tf.gather(old, places))
        self._position.assign_add(self._batch_size)
        return tuple(tf.gather(part, rows) for part in data)

    def _shuffled(self, epoch: tf.Tensor) -> tf.Tensor:
        # Integers of a named algorithm are the same everywhere; ties are as good as impossible.
        inputs, *_, seed = self._inputs.variables
        keys = tf.random.stateless_uniform(
            tf.shape(inputs)[:1],
            fold_in(seed, epoch),
            minval=None,
            maxval=None,
            dtype=tf.int64,
            alg="philox",
        )
        # A GPU holds no variable of 32-bit integers.
        return tf.cast(tf.argsort(keys, direction="DESCENDING"), tf.int64)


class _Untracked:
    """What TensorFlow's tracking of a module's variables does not see."""

    def __init__(self, variables: list[tf.Variable]) -> None:
        self.variables = variables


def as_variables(data: Sequence[tf.Tensor]) -> list[tf.Variable]:
    """Return data as variables of any number of rows.

    :param data: Matrices, and vectors.
    """
    return [_any_length(part) for part in data]


def _any_length(values: tf.Tensor) -> tf.Variable:
    return tf.Variable(values, trainable=False, shape=[None, *values.shape[1:]])
