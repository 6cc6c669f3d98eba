"""What draws the batches of a training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.models import VariationalModel, check_dataset
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.training._minibatches import Minibatches

__all__ = ["make_batches"]


def make_batches(
    model: VariationalModel,
    data: RegressionData | tf.data.Dataset,
    batch_size: int | None,
    seed: int,
) -> tuple[Callable[[], RegressionData], Any | None]:
    """Return what draws the next batch, and what holds the place in the data, if anything does."""
    if isinstance(data, tf.data.Dataset):
        if batch_size is not None:
            raise ValueError("batch_size must be None where data is a dataset of batches.")
        batches = check_dataset(model, data).repeat()
        tf.random.set_seed(seed)
        place = iter(batches)
        return lambda: next(place), place
    tensors = tuple(part for part in model.check_training_data(data) if part is not None)
    tf.random.set_seed(seed)
    if batch_size is None or batch_size >= len(tensors[0]):
        return lambda: tensors, None
    # Steps are not negative, so that none of them has the seed of the minibatches.
    minibatches = Minibatches(tensors, batch_size, fold_in(as_seed(seed), -1))
    return minibatches, minibatches
