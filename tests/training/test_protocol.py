"""The protocols that fit knows by name."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.keras import tf_keras
from model_reference import tiny_model, toy_data

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training import PROTOCOLS, Adam, NaturalGradientAdam, TrainingProgress, fit
from gpflow_dwp.training.optimizers import ProtocolName, cosine_learning_rate, paper_learning_rate

DATA = toy_data()


def assert_same_parameters(one: VariationalModel, other: VariationalModel) -> None:
    values = gpflow.utilities.read_values(other)
    for path, value in gpflow.utilities.read_values(one).items():
        np.testing.assert_allclose(value, values[path], rtol=1e-10, err_msg=path)


@pytest.mark.parametrize(
    ("name", "adam"),
    [
        ("papers", Adam(paper_learning_rate(40), epsilon=1e-8)),
        ("fast", Adam(cosine_learning_rate(40, warmup_steps=2), beta_2=0.95)),
        ("networks", Adam(cosine_learning_rate(40, 1e-2))),
    ],
)
def test_optimisers(name: ProtocolName, adam: Adam) -> None:
    by_name, by_hand = (tiny_model(1, data=DATA) for _ in range(2))

    fit(by_name, DATA, 40, protocol=name, kl_annealing_steps=0, progress=False)
    fit(by_hand, DATA, 40, optimizer=adam, kl_annealing_steps=0, progress=False)

    assert_same_parameters(by_name, by_hand)


@pytest.mark.usefixtures("eager")
def test_natural_gradients_move_the_output_layer() -> None:
    by_name, by_hand = (
        build_latent_variable_deep_gp(DATA, "LV-GP", num_inducing=5) for _ in range(2)
    )
    layer = by_hand.output_layer

    fit(by_name, DATA, 4, protocol="natural", progress=False)
    optimizer = NaturalGradientAdam([(layer.q_mu, layer.q_sqrt)])
    fit(by_hand, DATA, 4, optimizer=optimizer, kl_annealing_steps=0, progress=False)

    assert_same_parameters(by_name, by_hand)


@pytest.mark.usefixtures("eager")
def test_the_papers_network_ends_at_the_average_of_its_iterates() -> None:
    """Catches a model that is left at the last iterate; decay 0.999 from the start on."""
    averaged = tiny_model(1, data=DATA)
    average = [variable.numpy() for variable in averaged.trainable_variables]
    fit(averaged, DATA, 4, protocol="vmg", progress=False)

    def add(progress: TrainingProgress) -> None:
        iterates = progress.model.trainable_variables
        average[:] = [a + 1e-3 * (i - a) for a, i in zip(average, iterates, strict=True)]

    each = {"callbacks": [add], "callback_interval": 1}
    model, adam = tiny_model(1, data=DATA), tf_keras.optimizers.Adam(1e-3, epsilon=1e-8)
    fit(model, DATA, 4, optimizer=adam, kl_annealing_steps=0, progress=False, **each)
    for variable, expected in zip(averaged.trainable_variables, average, strict=True):
        np.testing.assert_allclose(variable, expected, rtol=1e-9, atol=1e-12)


def test_natural_gradients_are_refused_where_there_are_none() -> None:
    with pytest.raises(ValueError, match="protocol 'natural' .* got a DeepWishartProcess"):
        fit(tiny_model(1, data=DATA), DATA, 4, protocol="natural", progress=False)


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
    model = tiny_model(depth, data=DATA)

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


def test_fit_takes_the_batches_of_its_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a step that carries all of a large table where no batch size was given."""
    frugal = PROTOCOLS["fast"]._replace(batch_size=lambda num_rows: num_rows // 2)
    monkeypatch.setitem(PROTOCOLS, "fast", frugal)
    half = len(DATA[0]) // 2
    bounds = [
        fit(tiny_model(1, data=DATA), DATA, 4, batch_size=size, progress=False).elbo
        for size in (None, half, len(DATA[0]))
    ]
    np.testing.assert_array_equal(bounds[0], bounds[1])
    assert not np.array_equal(bounds[0], bounds[2])
