"""Adam on one vector against Keras's Adam."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp.training import Adam

SETTINGS = [{}, {"learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-2}]


def train(
    optimizer: Adam | tf_keras.optimizers.Optimizer, dtype: tf.DType, num_steps: int = 30
) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.normal(size=shape), dtype=dtype) for shape in [(), (3,), (2, 4)]]
    optimizer.build(variables)

    @tf.function(autograph=False)
    def step(index: tf.Tensor) -> None:
        gradients = [tf.sin(tf.cast(index, dtype) + 3.0 * variable) for variable in variables]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    for index in range(num_steps):
        step(tf.constant(index))
    return [variable.numpy() for variable in variables]


@pytest.mark.parametrize("settings", SETTINGS, ids=["default", "other"])
def test_iterates_are_those_of_the_paper(settings: dict[str, float]) -> None:
    settings = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7, **settings}
    beta_1, beta_2 = settings["beta_1"], settings["beta_2"]
    x = np.concatenate([variable.ravel() for variable in train(Adam(), tf.float64, num_steps=0)])
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t in range(1, 31):
        g = np.sin(t - 1 + 3.0 * x)
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
        rate = settings["learning_rate"] * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        x = x - rate * m / (np.sqrt(v) + settings["epsilon"])

    got = np.concatenate([variable.ravel() for variable in train(Adam(**settings), tf.float64)])
    np.testing.assert_allclose(got, x, rtol=1e-10)


def take_two_steps(
    optimizer: Adam | tf_keras.optimizers.Optimizer, variable: tf.Variable
) -> np.ndarray:
    optimizer.build([variable])
    for _ in range(2):
        optimizer.apply_gradients([(tf.sin(3.0 * variable), variable)])
    return variable.numpy()


def test_built_again_for_the_same_variables_it_goes_on_as_keras_does() -> None:
    """Catches moments that begin at zero while the number of steps that corrects them goes on."""
    ours, keras = Adam(), tf_keras.optimizers.Adam()
    variable, other = (tf.Variable([0.3, -0.7], dtype=tf.float64) for _ in range(2))

    for _ in range(2):
        got, expected = take_two_steps(ours, variable), take_two_steps(keras, other)

    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


def test_built_for_other_variables_it_begins_anew() -> None:
    used = Adam()
    first, *others = (tf.Variable([0.3, -0.7], dtype=tf.float64) for _ in range(3))
    take_two_steps(used, first)

    got, expected = map(take_two_steps, (used, Adam()), others)

    np.testing.assert_array_equal(got, expected)
