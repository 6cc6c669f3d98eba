"""Gradients of every distribution of the package, against difference quotients."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf
from distribution_cases import (
    GRAM_NAMES,
    SEED,
    as_tensors,
    every_name,
    make,
    random_parameters,
)

CASES = [(4, 2), (3, 5)]


@every_name
@pytest.mark.parametrize(("size", "df"), CASES)
def test_gradients_of_log_prob(name: str, size: int, df: int) -> None:
    # Along one random direction in each parameter, against a central difference.
    parameters = random_parameters(name, size, df)
    value = make(name, parameters, df).sample(2, seed=SEED).numpy()
    tensors = as_tensors(parameters)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = tf.reduce_sum(make(name, tensors, df).log_prob(value))
    gradients = tape.gradient(total, tensors)
    rng, step = np.random.default_rng(1), 1e-6
    for key, gradient in gradients.items():
        direction = rng.normal(size=gradient.shape)

        def log_prob(sign: float, key: str = key, direction: np.ndarray = direction) -> float:
            moved = {**parameters, key: parameters[key] + sign * step * direction}
            return float(tf.reduce_sum(make(name, moved, df).log_prob(value)))

        expected = (log_prob(1.0) - log_prob(-1.0)) / (2.0 * step)
        got = np.sum(gradient * direction)
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3, err_msg=key)


@every_name
@pytest.mark.parametrize(("size", "df"), CASES)
def test_gradients_of_samples(name: str, size: int, df: int) -> None:
    # With common random numbers, samples are smooth in all parameters but those of the Gamma
    # variables, whose rejection sampler may change its mind; their gradients have own tests.
    parameters = random_parameters(name, size, df)
    tensors = as_tensors(parameters)
    weights = np.random.default_rng(2).normal(size=make(name, parameters, df).event_shape)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        sample = make(name, tensors, df).sample(2, seed=SEED)
        total = tf.reduce_sum(weights * sample)
    gradients = tape.gradient(total, tensors)
    rng, step = np.random.default_rng(3), 1e-6
    for key, gradient in gradients.items():
        if key in ("concentration", "df"):
            continue
        direction = rng.normal(size=gradient.shape)

        def weighted(sign: float, key: str = key, direction: np.ndarray = direction) -> float:
            moved = {**parameters, key: parameters[key] + sign * step * direction}
            return np.sum(weights * make(name, moved, df).sample(2, seed=SEED))

        expected = (weighted(1.0) - weighted(-1.0)) / (2.0 * step)
        got = np.sum(gradient * direction)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", [*GRAM_NAMES, "InverseWishart"])
@pytest.mark.parametrize(("size", "df"), CASES)
def test_gradient_of_log_prob_in_the_value(name: str, size: int, df: int) -> None:
    # Along a curve G(t) of matrices of rank R.
    rng = np.random.default_rng(5)
    distribution = make(name, random_parameters(name, size, df), df)
    rank = size if name == "InverseWishart" else distribution.rank
    start = reference.random_trapezoid(rng, size, rank)
    direction = rng.normal(size=(size, rank))

    def curve(time: tf.Tensor) -> tf.Tensor:
        factor = start + time * direction
        return distribution.log_prob(tf.matmul(factor, factor, transpose_b=True))

    time = tf.constant(0.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(time)
        log_prob = curve(time)
    expected = (curve(time + 1e-6) - curve(time - 1e-6)) / 2e-6
    np.testing.assert_allclose(tape.gradient(log_prob, time), expected, rtol=1e-4, atol=1e-4)
