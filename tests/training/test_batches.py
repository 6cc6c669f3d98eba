"""Minibatches are epochs in random order, a function of their number; and where training runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.random import as_seed
from gpflow_dwp.training._batches import Minibatches, are_on_gpu

ROWS = 7


def make(batch_size: int, rows: int = ROWS) -> Minibatches:
    X = tf.reshape(tf.range(rows, dtype=tf.float64), [-1, 1])
    return Minibatches((X, -X), batch_size, as_seed(0))


def draw(batches: Minibatches, count: int) -> np.ndarray:
    """Row numbers of several batches, [count, B]; X and Y must be of the same rows."""
    next_batch = tf.function(batches.draw, autograph=False)
    state, drawn = tuple(map(tf.convert_to_tensor, batches.state)), []
    for _ in range(count):
        pair, state = next_batch(batches.arrays, state)
        drawn.append(pair)
    X, Y = np.array(drawn)[..., 0].swapaxes(0, 1)
    np.testing.assert_array_equal(X, -Y)
    return X.astype(int)


@pytest.mark.parametrize("batch_size", [1, 3, 6, 7])
def test_every_row_once_in_each_epoch(batch_size: int) -> None:
    rows = draw(make(batch_size), 4 * ROWS)

    assert rows.shape == (4 * ROWS, batch_size)
    epochs = rows.reshape(-1, ROWS)  # batches go over from one into the next
    np.testing.assert_array_equal(
        np.sort(epochs, axis=1), np.tile(np.arange(ROWS), [len(rows), 1])[: len(epochs)]
    )
    assert len(np.unique(epochs, axis=0)) > 1


def test_orders_are_uniform() -> None:
    """Each row is equally often in each place, and after each other row: within 5 sigma."""
    num_epochs, rows = 1_200, 4
    epochs = draw(make(4, rows=rows), num_epochs)

    for share, first, second in ((1 / 4, [0], [1]), (1 / 12, [0, 1], [2, 3])):
        for places in (first, second):
            _, counts = np.unique(epochs[:, places], axis=0, return_counts=True)
            assert len(counts) == round(1 / share)
            sigma = np.sqrt(num_epochs * share * (1 - share))
            assert np.all(np.abs(counts - num_epochs * share) < 5 * sigma)


def test_only_a_whole_model_is_on_a_gpu() -> None:
    place = "/job:localhost/replica:0/task:0/device:{}:0"
    gpu, cpu = (SimpleNamespace(device=place.format(kind)) for kind in ("GPU", "CPU"))
    variables: Any = [gpu, gpu]
    assert are_on_gpu(variables)
    assert not are_on_gpu([*variables, cpu])
    with tf.device("CPU:0"):
        assert not are_on_gpu([tf.Variable(0.0)])


def test_products_in_single_precision_are_no_less_precise() -> None:
    """TensorFlow's default on GPUs is: Gram matrices differ by 4e-4 from those of their kernels."""
    build_deep_wishart_process((np.eye(2), np.eye(2)), 1)

    assert not tf.config.experimental.tensor_float_32_execution_enabled()
