"""Optimisers, schedules and protocols."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.optimizers import NaturalGradient
from model_reference import tiny_model, toy_data

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.training import PROTOCOLS, Adam, NaturalGradientAdam, TrainingProgress, fit
from gpflow_dwp.training.optimizers import (
    AdamState,
    ProtocolName,
    adam_step,
    cosine_learning_rate,
    kl_weights,
    paper_learning_rate,
)

DATA = toy_data()
START = np.array([0.3, -0.7])


def take_steps(optimizer: Adam, variable: tf.Variable, num_steps: int) -> np.ndarray:
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


@pytest.mark.parametrize("settings", [(), (0.1, 0.5, 0.9, 1e-2)])
def test_iterates_are_those_of_the_paper(settings: tuple[float, ...]) -> None:
    """Catches moments, or a number of steps, that a second run takes over from the first, too."""
    optimizer = Adam(*settings)
    got, again = (take_steps(optimizer, tf.Variable(START), 10) for _ in range(2))

    rate, beta_1, beta_2, epsilon = settings or (1e-3, 0.9, 0.999, 1e-7)
    x, m, v = START, np.zeros(2), np.zeros(2)
    for t in range(1, 11):
        g = np.sin(t - 1 + 3.0 * x)
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
        x = x - rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (np.sqrt(v) + epsilon)
    np.testing.assert_allclose(got, x, rtol=1e-10)
    np.testing.assert_array_equal(again, got)


@pytest.mark.usefixtures("eager")
def test_step_is_that_of_gpflow() -> None:
    model = build_latent_variable_deep_gp(DATA, "GP", num_inducing=5)
    layer = model.output_layer
    reference = gpflow.utilities.deepcopy(model)
    gamma = 0.3

    optimizer = NaturalGradientAdam([(layer.q_mu, layer.q_sqrt)], gamma=gamma)
    fit(model, DATA, 1, optimizer=optimizer, kl_annealing_steps=0, progress=False)

    ((mean, root),) = PROTOCOLS["natural"].optimizer(model, 1)._pairs
    assert mean is layer.q_mu and root is layer.q_sqrt
    other = reference.output_layer
    loss = functools.partial(reference.training_loss, DATA)
    NaturalGradient(gamma).minimize(loss, [(other.q_mu, other.q_sqrt)])
    np.testing.assert_allclose(layer.q_mu, other.q_mu, atol=1e-10)
    np.testing.assert_allclose(layer.q_sqrt, other.q_sqrt, atol=1e-10)
    # Adam moves everything else by its rate in the first step.
    ends = (each.likelihood.variance.unconstrained_variable.numpy() for each in (model, reference))
    np.testing.assert_allclose(np.abs(np.subtract(*ends)), 0.005, rtol=1e-3)


def test_bad_arguments_are_refused() -> None:
    model = build_latent_variable_deep_gp(DATA, "GP", num_inducing=5)
    pair = (model.output_layer.q_mu, model.output_layer.q_sqrt)
    with pytest.raises(ValueError, match="gamma must be positive"):
        NaturalGradientAdam([pair], gamma=0.0)
    with pytest.raises(ValueError, match="variational must hold trainable parameters"):
        NaturalGradientAdam([pair]).build([model.likelihood.variance.unconstrained_variable])
    with pytest.raises(ValueError, match="protocol 'natural' .* got a DeepWishartProcess"):
        fit(tiny_model(1), DATA, 4, protocol="natural", progress=False)


def test_the_weight_of_log_ratios_grows_to_one() -> None:
    steps = tf.constant([0, 1, 4, 9], tf.int64)

    for annealing_steps, expected in ((4, [0, 0.25, 1, 1]), (1, [0, 1, 1, 1]), (0, [1, 1, 1, 1])):
        np.testing.assert_array_equal(kl_weights(steps, annealing_steps), expected)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (cosine_learning_rate(100), {0: 3e-2, 50: 1.515e-2, 100: 3e-4}),
        (
            cosine_learning_rate(110, 1e-2, warmup_steps=10),
            {0: 1e-3, 5: 5.5e-3, 10: 1e-2, 60: 5.05e-3, 110: 1e-4},
        ),
        (paper_learning_rate(100), {0: 1e-2, 49: 1e-2, 51: 1e-3, 99: 1e-3}),
    ],
    ids=["cosine", "which grows first", "half way"],
)
def test_learning_rates_fall(rate: Callable[[int], tf.Tensor], expected: dict[int, float]) -> None:
    np.testing.assert_allclose([rate(step) for step in expected], [*expected.values()], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "adam"),
    [
        ("papers", Adam(paper_learning_rate(40), epsilon=1e-8)),
        ("fast", Adam(cosine_learning_rate(40, warmup_steps=2), beta_2=0.95)),
        ("networks", Adam(cosine_learning_rate(40, 1e-2))),
    ],
)
def test_optimisers(name: ProtocolName, adam: Adam) -> None:
    found = PROTOCOLS[name].optimizer(tiny_model(1), 40)

    assert isinstance(found, Adam)
    np.testing.assert_allclose(found.settings(40), adam.settings(40))


@pytest.mark.usefixtures("eager")
def test_the_papers_network_ends_at_the_average_of_its_iterates() -> None:
    """Catches a model that is left at the last iterate; decay 0.999 from the start on."""
    averaged = tiny_model(1)
    average = [variable.numpy() for variable in averaged.trainable_variables]
    fit(averaged, DATA, 2, protocol="vmg", progress=False)

    def add(progress: TrainingProgress) -> None:
        iterates = progress.model.trainable_variables
        average[:] = [a + 1e-3 * (i - a) for a, i in zip(average, iterates, strict=True)]

    each = {"callbacks": [add], "callback_interval": 1}
    model, adam = tiny_model(1), tf_keras.optimizers.Adam(1e-3, epsilon=1e-8)
    fit(model, DATA, 2, optimizer=adam, kl_annealing_steps=0, progress=False, **each)
    for variable, expected in zip(averaged.trainable_variables, average, strict=True):
        np.testing.assert_allclose(variable, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "depth", "num_steps", "expected"),
    [
        ("papers", 5, 20_000, 1_000),
        ("papers", 2, 100, 50),
        ("fast", 1, 6_000, 1_000),
        ("fast", 3, 6_000, 2_000),
        ("fast", 7, 6_000, 3_000),
        ("fast", 2, 5, 0),
        ("natural", 2, 100, 0),
        ("networks", 2, 6_000, 0),
    ],
)
def test_annealing_is_over_before_the_run_is(
    name: ProtocolName, depth: int, num_steps: int, expected: int
) -> None:
    model: Any = SimpleNamespace(num_hidden_layers=depth - 1)

    assert PROTOCOLS[name].kl_annealing_steps(model, num_steps) == expected


@pytest.mark.parametrize(
    ("name", "num_rows", "expected"),
    [
        ("papers", 2_000, None),
        ("fast", 2_001, 1_000),
        ("natural", 512, None),
        ("natural", 513, 512),
        ("networks", 20, None),
        ("vmg", 8_611, 172),
    ],
)
def test_batch_sizes(name: ProtocolName, num_rows: int, expected: int | None) -> None:
    assert PROTOCOLS[name].batch_size(num_rows) == expected


@pytest.mark.usefixtures("eager")
def test_fit_takes_the_batches_of_its_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a step that carries all of a large table where no batch size was given."""
    frugal = PROTOCOLS["fast"]._replace(batch_size=lambda num_rows: num_rows // 2)
    monkeypatch.setitem(PROTOCOLS, "fast", frugal)
    half = len(DATA[0]) // 2
    bounds = [
        fit(tiny_model(1), DATA, 1, batch_size=size, progress=False).elbo
        for size in (None, half, len(DATA[0]))
    ]
    np.testing.assert_array_equal(bounds[0], bounds[1])
    assert not np.array_equal(bounds[0], bounds[2])
