"""What draws the batches of a training run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed, TrainingData
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import as_seed, fold_in

__all__ = ["Batches", "Minibatches", "are_on_gpu", "make_batches"]


class Batches:
    """The same batch at every step: a function of arrays, within what is compiled.

    :param data: X [N, D] and Y [N, P], and weights [N] if there are any, as tensors.
    :param any_number: Whether the function is for any number of rows. On a GPU it is not: the host
        waits for shapes less often.
    """

    arrays: tuple[tf.Tensor, ...] = ()
    """The data."""
    state: tuple[tf.Variable, ...] = ()
    """What a draw changes."""
    key: Hashable
    """What the function depends on besides these."""
    place: Mapping[str, Any] = {}
    """What holds the place in the data, for a checkpoint."""
    _any_number = True

    def __init__(self, data: RegressionData, any_number: bool) -> None:
        self.arrays, self._any_number = tuple(data), any_number
        self.key = "all rows", self.specs

    @property
    def specs(self) -> tuple[tf.TensorSpec, ...]:
        """What ``arrays`` may be, for whoever compiles the function."""
        if not self._any_number:
            return tuple(map(tf.TensorSpec.from_tensor, self.arrays))
        return tuple(tf.TensorSpec([None, *each.shape[1:]], each.dtype) for each in self.arrays)

    def draw(
        self, arrays: tuple[tf.Tensor, ...], state: tuple[tf.Tensor, ...]
    ) -> tuple[RegressionData, tuple[tf.Tensor, ...]]:
        """Return the next batch and the state after it."""
        return arrays, state


def make_batches(
    model: VariationalModel,
    data: TrainingData,
    batch_size: int | None,
    usual_batch_size: Callable[[int], int | None],
    seed: int,
) -> Batches:
    """Return what draws the next batch; without a size, the usual one for so many rows, or all."""
    tensors = tuple(part for part in model.check_training_data(data) if part is not None)
    if batch_size is None:
        batch_size = usual_batch_size(len(tensors[0]))
    if batch_size is None or batch_size >= len(tensors[0]):
        return Batches(tensors, any_number=not are_on_gpu(model.variables))
    # Steps are not negative, so that none of them has the seed of the minibatches.
    return Minibatches(tensors, batch_size, fold_in(as_seed(seed), -1))


def are_on_gpu(variables: Sequence[tf.Variable]) -> bool:
    """Say whether all of ``variables`` are on a GPU."""
    devices = [tf.DeviceSpec.from_string(variable.device) for variable in variables]
    return all(device.device_type == "GPU" for device in devices)


class Minibatches(Batches):
    """Draw rows without replacement within each epoch; a batch may go over into the next epoch.

    :param data: As for :class:`Batches`.
    :param batch_size: Rows of a batch, at most N.
    :param seed: Every epoch's order depends on it and on the epoch alone.
    """

    def __init__(self, data: RegressionData, batch_size: int, seed: Seed) -> None:
        self._batch_size = batch_size
        self.arrays = (*data, tf.convert_to_tensor(seed))
        position = tf.Variable(0, dtype=tf.int64, trainable=False)
        order = _shuffled(tf.shape(data[0])[:1], self.arrays[-1], tf.constant(0, tf.int64))
        self.state = position, tf.Variable(order, trainable=False, shape=[None])
        self.key = "minibatches", batch_size, self.specs
        self.place = {"_position": position, "_order": self.state[1]}

    def draw(
        self, arrays: tuple[tf.Tensor, ...], state: tuple[tf.Tensor, ...]
    ) -> tuple[RegressionData, tuple[tf.Tensor, ...]]:
        (*data, seed), (start, old) = arrays, state
        num_rows = tf.shape(data[0], tf.int64)[0]
        places = start + tf.range(self._batch_size, dtype=tf.int64)
        epochs, places = places // num_rows, places % num_rows
        before, last = tf.maximum(start - 1, 0) // num_rows, epochs[-1]
        shape = tf.shape(data[0])[:1]
        new = tf.cond(last > before, lambda: _shuffled(shape, seed, last), lambda: old)
        rows = tf.where(epochs == last, tf.gather(new, places), tf.gather(old, places))
        return tuple(tf.gather(part, rows) for part in data), (start + self._batch_size, new)


def _shuffled(shape: tf.Tensor, seed: Seed, epoch: tf.Tensor) -> tf.Tensor:
    # Integers of a named algorithm are the same everywhere; ties are as good as impossible.
    keys = tf.random.stateless_uniform(
        shape, fold_in(seed, epoch), minval=None, maxval=None, dtype=tf.int64, alg="philox"
    )
    return tf.ensure_shape(tf.cast(tf.argsort(keys, direction="DESCENDING"), tf.int64), [None])
