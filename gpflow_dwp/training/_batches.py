"""What draws the batches of a training run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import check_dataset
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.training._internals import iterator_resources

__all__ = ["Batches", "Minibatches", "are_on_gpu", "make_batches"]


@runtime_checkable
class Batches(Protocol):
    """Draws batches in a compiled function that others can be given to."""

    @property
    def key(self) -> Hashable:
        """What the function depends on, apart from the resources."""

    @property
    def resources(self) -> list[Any]:
        """Variables and iterators that the function uses."""

    @property
    def place(self) -> Any | None:
        """What holds the place in the data, for a checkpoint, if anything does."""

    def __call__(self) -> RegressionData:
        """Return the next batch."""


def make_batches(
    model: VariationalModel,
    data: RegressionData | tf.data.Dataset,
    batch_size: int | None,
    usual_batch_size: Callable[[int], int | None],
    seed: int,
) -> Batches:
    """Return what draws the next batch; without a size, the usual one for so many rows, or all."""
    if isinstance(data, tf.data.Dataset):
        if batch_size is not None:
            raise ValueError("batch_size must be None where data is a dataset of batches.")
        return _Stream(_untuned(check_dataset(model, data).repeat()))
    tensors = tuple(part for part in model.check_training_data(data) if part is not None)
    if batch_size is None:
        batch_size = usual_batch_size(len(tensors[0]))
    if batch_size is None or batch_size >= len(tensors[0]):
        return _AllRows(tensors, any_number=not are_on_gpu(model.variables))
    # Steps are not negative, so that none of them has the seed of the minibatches.
    return Minibatches(tensors, batch_size, fold_in(as_seed(seed), -1))


def are_on_gpu(variables: Sequence[tf.Variable]) -> bool:
    """Say whether all of ``variables`` are on a GPU."""
    devices = [tf.DeviceSpec.from_string(variable.device) for variable in variables]
    return all(device.device_type == "GPU" for device in devices)


def _untuned(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Leave the parallelism of a dataset as it is, unless its options say otherwise.

    TensorFlow 2.21 tunes it in a thread that sleeps for up to a minute, for which whatever lets the
    iterator go often waits.
    """
    if batches.options().autotune.enabled is not None:
        return batches
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.with_options(options)


class _AllRows:
    """The same batch at every step.

    :param any_number: Whether the function is for any number of rows. On a GPU it is not: the host
        waits for shapes less often.
    """

    place = None

    def __init__(self, data: RegressionData, any_number: bool) -> None:
        variable = _any_length if any_number else lambda part: tf.Variable(part, trainable=False)
        self.resources = [variable(part) for part in data]
        self.key = "all rows", *(tuple(variable.shape) for variable in self.resources)

    def __call__(self) -> RegressionData:
        return tuple(variable.read_value() for variable in self.resources)


class _Stream:
    """Batches of a dataset."""

    def __init__(self, batches: tf.data.Dataset) -> None:
        self.place = iter(batches)
        self.key = "stream", batches.element_spec
        self.resources = iterator_resources(self.place)

    def __call__(self) -> RegressionData:
        return tuple(next(self.place))


class Minibatches:
    """Draw rows without replacement within each epoch; a batch may go over into the next epoch.

    :param data: X [N, D] and Y [N, P], and weights [N] if there are any, as tensors.
    :param batch_size: Rows of a batch, at most N.
    :param seed: Every epoch's order depends on it and on the epoch alone.
    """

    def __init__(self, data: RegressionData, batch_size: int, seed: Seed) -> None:
        self._batch_size = batch_size
        self._data = [_any_length(part) for part in data]
        # A GPU holds no variable of 32-bit integers.
        self._seed = tf.Variable(tf.cast(seed, tf.int64), trainable=False)
        self._position = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._order = _any_length(self._shuffled(tf.constant(0, tf.int64)))
        columns = (tuple(variable.shape[1:]) for variable in self._data)
        self.key = "minibatches", batch_size, *columns
        self.resources = [*self._data, self._seed, self._position, self._order]
        self.place = {"_position": self._position, "_order": self._order}

    def __call__(self) -> RegressionData:
        num_rows = tf.shape(self._data[0], tf.int64)[0]
        start = self._position.read_value()
        places = start + tf.range(self._batch_size, dtype=tf.int64)
        epochs, places = places // num_rows, places % num_rows
        before, last = tf.maximum(start - 1, 0) // num_rows, epochs[-1]
        old = self._order.read_value()
        new = tf.cond(last > before, lambda: self._order.assign(self._shuffled(last)), lambda: old)
        rows = tf.where(epochs == last, tf.gather(new, places), tf.gather(old, places))
        self._position.assign_add(self._batch_size)
        return tuple(tf.gather(part, rows) for part in self._data)

    def _shuffled(self, epoch: tf.Tensor) -> tf.Tensor:
        # Integers of a named algorithm are the same everywhere; ties are as good as impossible.
        keys = tf.random.stateless_uniform(
            tf.shape(self._data[0])[:1],
            fold_in(self._seed, epoch),
            minval=None,
            maxval=None,
            dtype=tf.int64,
            alg="philox",
        )
        return tf.cast(tf.argsort(keys, direction="DESCENDING"), tf.int64)


def _any_length(values: tf.Tensor) -> tf.Variable:
    """A variable of any number of rows."""
    return tf.Variable(values, trainable=False, shape=[None, *values.shape[1:]])
