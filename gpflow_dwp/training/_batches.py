"""What draws the batches of a training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow import default_float
from gpflow.base import RegressionData

from gpflow_dwp.data import check_pair
from gpflow_dwp.models import VariationalModel
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
        if int(data.cardinality()) == 0:
            raise ValueError("data must hold at least one batch, got an empty dataset.")
        tf.random.set_seed(seed)
        batches = iter(data.repeat())
        return lambda: next(batches), batches
    X, Y = check_pair(data)
    width = model.num_inputs
    if X.shape[1] != width:
        raise ValueError(f"data[0] must have {width} columns, as the model has, got {X.shape[1]}.")
    likelihood = model.likelihood
    columns = likelihood.observation_dim
    if columns is None and likelihood.latent_dim is None:
        columns = model.num_outputs
    if columns is not None and Y.shape[1] != columns:
        raise ValueError(
            f"data[1] must have {columns} columns, as the model has, got {Y.shape[1]}."
        )
    tf.random.set_seed(seed)
    tensors = (tf.constant(X, default_float()), tf.constant(Y, default_float()))
    if batch_size is None or batch_size >= len(X):
        return lambda: tensors, None
    # Steps are not negative, so that none of them has the seed of the minibatches.
    minibatches = Minibatches(tensors, batch_size, fold_in(as_seed(seed), -1))
    return minibatches, minibatches
