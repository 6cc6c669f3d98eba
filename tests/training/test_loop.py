"""The compiled loop: one trace, the annealed objective, and the state that a failure leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.utilities import read_values
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import Adam, EarlyStopping
from gpflow_dwp.training._batches import Batches, make_batches
from gpflow_dwp.training.loop import CompiledLoop

DATA = tuple(tf.constant(part) for part in toy_data())


def make_loop(model: DeepWishartProcess, **changes: Any) -> CompiledLoop:
    arguments = {
        "batches": make_batches(model, DATA, len(DATA[0]), lambda num_rows: None, 0),
        "optimizer": tf_keras.optimizers.SGD(2.0**-10),  # exact in single precision, too
        "annealing_steps": 0,
        "seed": as_seed(0),
        "jit_compile": False,
        **changes,
    }
    return CompiledLoop(model, **arguments)


def test_one_trace_serves_any_number_of_steps_which_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, calls = DeepWishartProcess.elbo_terms, []

    def counted(self: DeepWishartProcess, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(DeepWishartProcess, "elbo_terms", counted)
    together, apart = (tiny_model(2, posterior="GW", whiten=True) for _ in range(2))
    # Of this package, whose steps are compiled once for both.
    whole = make_loop(together, optimizer=Adam()).run(6)
    loop = make_loop(apart, optimizer=Adam())

    parts = [loop.run(num_steps) for num_steps in (1, 3, 2)]

    assert len(calls) == 1
    assert [part.log_ratios.shape for part in parts] == [(1, 2), (3, 2), (2, 2)]
    assert not loop.failed
    np.testing.assert_array_equal(np.concatenate([part.data for part in parts]), whole.data)
    np.testing.assert_equal(read_values(apart), read_values(together))


@pytest.mark.usefixtures("eager")
def test_steps_follow_the_gradient_of_the_annealed_bound() -> None:
    model, copy = tiny_model(1), tiny_model(1)
    loop = make_loop(model, annealing_steps=2)

    loop.run(2)

    # Without hidden layers the bound has no noise; the weights of the first two steps are 0, ½.
    for weight in (0.0, 0.5):
        with tf.GradientTape() as tape:
            bound = copy.elbo_terms(DATA).weighted_sum(weight)
        variables = copy.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(bound, variables), strict=True):
            variable.assign_add(2.0**-10 * gradient)
    expected = read_values(copy)
    for path, value in read_values(model).items():
        np.testing.assert_allclose(value, expected[path], atol=1e-10)


def test_a_failure_leaves_the_last_state_whose_bound_was_finite() -> None:
    X, Y = DATA
    bad = tf.concat([X[:-1], tf.fill([1, 2], np.float64(np.nan))], axis=0)

    class Spoilt(Batches):
        """Of which the first five (from 0) are good."""

        key = "spoilt"

        def __init__(self) -> None:
            self.state = (tf.Variable(0),)

        def draw(self, arrays: Any, state: Any) -> Any:
            return (tf.where(state[0] < 5, X, bad), Y), (state[0] + 1,)

    model, shorter = tiny_model(1), tiny_model(1)
    loop = make_loop(model, batches=Spoilt(), optimizer=Adam())
    terms = loop.run(10)
    make_loop(shorter, batches=Spoilt(), optimizer=Adam()).run(4)

    assert loop.failed
    assert len(terms.data) == 6
    assert np.all(np.isfinite(terms.data[:5])) and np.isnan(terms.data[5])
    # The bound of the state after five steps is not finite; the one after four had a finite one.
    np.testing.assert_equal(read_values(model), read_values(shorter))


@pytest.mark.usefixtures("eager")
def test_steps_can_be_followed_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger, and tests that have no time to compile, ask TensorFlow to compile nothing."""
    model, data = tiny_model(1), toy_data()
    were_eager = []
    original = type(model)._estimate_terms

    def estimate(*arguments: object, **settings: object) -> object:
        were_eager.append(tf.executing_eagerly())
        return original(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "_estimate_terms", estimate)
    history = fit(model, data, 2, callbacks=[EarlyStopping(data)], progress=False)

    assert history.num_steps == 2
    assert were_eager == [True, True]
