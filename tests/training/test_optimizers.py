"""Adam against the paper's formulas, natural gradients against GPflow's, and schedules."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.optimizers import NaturalGradient
from model_reference import toy_data

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.training import Adam, NaturalGradientAdam, fit
from gpflow_dwp.training.optimizers import (
    AdamState,
    adam_step,
    cosine_learning_rate,
    kl_weights,
    paper_learning_rate,
)

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


def test_built_again_it_begins_anew() -> None:
    """Catches moments, or a number of steps, that a second run takes over from the first."""
    used = Adam()
    take_steps(used, tf.Variable(START))

    got, expected = (take_steps(each, tf.Variable(START)) for each in (used, Adam()))

    np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("eager")
def test_step_is_that_of_gpflow() -> None:
    data = toy_data()
    model = build_latent_variable_deep_gp(data, "GP", num_inducing=5)
    layer = model.output_layer
    reference = gpflow.utilities.deepcopy(model)
    gamma = 0.3

    optimizer = NaturalGradientAdam([(layer.q_mu, layer.q_sqrt)], gamma=gamma)
    fit(model, data, 1, optimizer=optimizer, kl_annealing_steps=0, progress=False)

    other = reference.output_layer
    NaturalGradient(gamma).minimize(
        lambda: reference.training_loss(data), [(other.q_mu, other.q_sqrt)]
    )
    np.testing.assert_allclose(layer.q_mu, other.q_mu, atol=1e-10)
    np.testing.assert_allclose(layer.q_sqrt, other.q_sqrt, atol=1e-10)
    # Adam moves everything else by its rate in the first step.
    moved = (
        model.likelihood.variance.unconstrained_variable
        - reference.likelihood.variance.unconstrained_variable
    )
    np.testing.assert_allclose(np.abs(moved), 0.005, rtol=1e-3)


def test_bad_arguments() -> None:
    model = build_latent_variable_deep_gp(toy_data(), "GP", num_inducing=5)
    pair = (model.output_layer.q_mu, model.output_layer.q_sqrt)
    with pytest.raises(ValueError, match="gamma must be positive"):
        NaturalGradientAdam([pair], gamma=0.0)
    with pytest.raises(ValueError, match="variational must hold trainable parameters"):
        NaturalGradientAdam([pair]).build([model.likelihood.variance.unconstrained_variable])


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
