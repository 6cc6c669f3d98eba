"""Adam on one vector against the paper's formulas, and Keras's Adam."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp.training import Adam
from gpflow_dwp.training.adam import AdamState, adam_step

START = np.array([0.3, -0.7])


def take_steps(optimizer: Adam, variable: tf.Variable, num_steps: int = 2) -> np.ndarray:
    """Follow the gradient sin(t + 3 x) of step t, with the optimiser's own state."""
    optimizer.build([variable])
    for step in range(num_steps):
        gradient = tf.sin(np.float64(step) + 3.0 * variable)
        before = AdamState(*map(tf.convert_to_tensor, optimizer.state))
        change, after = adam_step(before, gradient, optimizer.settings(1)[0])
        variable.assign_sub(change)
        for place, value in zip(optimizer.state, after, strict=True):
            place.assign(value)
    return variable.numpy()


@pytest.mark.parametrize(
    "settings", [{}, {"learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-2}]
)
def test_iterates_are_those_of_the_paper(settings: dict[str, float]) -> None:
    got = take_steps(Adam(**settings), tf.Variable(START), 30)

    settings = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7, **settings}
    beta_1, beta_2 = settings["beta_1"], settings["beta_2"]
    x, m, v = START, np.zeros(2), np.zeros(2)
    for t in range(1, 31):
        g = np.sin(t - 1 + 3.0 * x)
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
        rate = settings["learning_rate"] * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        x = x - rate * m / (np.sqrt(v) + settings["epsilon"])
    np.testing.assert_allclose(got, x, rtol=1e-10)


def test_built_again_for_the_same_variables_it_goes_on_as_keras_does() -> None:
    """Catches moments that begin at zero while the number of steps that corrects them goes on."""
    ours, keras = Adam(), tf_keras.optimizers.Adam()
    variable, other = tf.Variable(START), tf.Variable(START)
    for _ in range(2):
        take_steps(ours, variable)
        keras.build([other])
        for step in range(2):
            keras.apply_gradients([(tf.sin(np.float64(step) + 3.0 * other), other)])

    np.testing.assert_allclose(variable, other, rtol=2e-5, atol=1e-6)


def test_built_for_other_variables_it_begins_anew() -> None:
    used = Adam()
    take_steps(used, tf.Variable(START))

    got, expected = (take_steps(each, tf.Variable(START)) for each in (used, Adam()))

    np.testing.assert_array_equal(got, expected)
