"""What draws the batches of a training run."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, runtime_checkable

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import check_dataset
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.training._device import are_on_gpu
from gpflow_dwp.training._internals import iterator_resources
from gpflow_dwp.training._minibatches import Minibatches, as_variables

__all__ = ["Batches", "make_batches"]


@runtime_checkable
class Batches(Protocol):
    """Draws batches in a compiled function that others can be given to."""

    @property
    def key(self) -> Hashable:
        """What the function depends on, apart from the resources."""

    @property
    def resources(self) -> list[Any]:
        """Variables and iterators that the function uses."""

    def __call__(self) -> RegressionData:
        """Return the next batch."""


def make_batches(
    model: VariationalModel,
    data: RegressionData | tf.data.Dataset,
    batch_size: int | None,
    usual_batch_size: Callable[[int], int | None],
    seed: int,
) -> tuple[Batches, Any | None]:
    """Return what draws the next batch, and what holds the place in the data, if anything does.

    Without a batch size it is the usual one for so many rows, or all.
    """
    if isinstance(data, tf.data.Dataset):
        if batch_size is not None:
            raise ValueError("batch_size must be None where data is a dataset of batches.")
        stream = _Stream(_untuned(check_dataset(model, data).repeat()))
        return stream, stream.place
    tensors = tuple(part for part in model.check_training_data(data) if part is not None)
    if batch_size is None:
        batch_size = usual_batch_size(len(tensors[0]))
    if batch_size is None or batch_size >= len(tensors[0]):
        return _AllRows(tensors, any_number=not are_on_gpu(model.variables)), None
    # Steps are not negative, so that none of them has the seed of the minibatches.
    minibatches = Minibatches(tensors, batch_size, fold_in(as_seed(seed), -1))
    return minibatches, minibatches


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

    def __init__(self, data: RegressionData, any_number: bool) -> None:
        self.resources = (
            as_variables(data) if any_number else [tf.Variable(part, False) for part in data]
        )
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
