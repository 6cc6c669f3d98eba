"""Schedules of the learning rate and of the weight of the log ratios."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.training.schedule import cosine_learning_rate, kl_weights, paper_learning_rate


def test_the_weight_of_log_ratios_grows_to_one() -> None:
    steps = tf.constant([0, 1, 4, 9], tf.int64)

    for annealing_steps, expected in ((4, [0, 0.25, 1, 1]), (1, [0, 1, 1, 1]), (0, [1, 1, 1, 1])):
        np.testing.assert_array_equal(kl_weights(steps, annealing_steps), expected)


@pytest.mark.parametrize(
    ("rate", "initial"),
    [(cosine_learning_rate(100), 3e-2), (cosine_learning_rate(100, 1e-2), 1e-2)],
)
def test_learning_rate_falls_along_a_cosine(
    rate: Callable[[int], tf.Tensor], initial: float
) -> None:
    rates = [float(rate(step)) / initial for step in (0, 50, 100)]
    np.testing.assert_allclose(rates, [1.0, 0.505, 0.01], rtol=1e-6)


def test_learning_rate_grows_before_it_falls() -> None:
    rate = cosine_learning_rate(110, 1e-2, warmup_steps=10)

    rates = [float(rate(step)) for step in (0, 5, 10, 60, 110)]
    np.testing.assert_allclose(rates, [1e-3, 5.5e-3, 1e-2, 5.05e-3, 1e-4], rtol=1e-5)


def test_learning_rate_falls_half_way() -> None:
    rate = paper_learning_rate(100)

    rates = [float(rate(step)) for step in (0, 49, 51, 99)]
    np.testing.assert_allclose(rates, [1e-2, 1e-2, 1e-3, 1e-3])
