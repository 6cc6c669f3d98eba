"""What is left of a run: nothing that grows from one to the next."""

from __future__ import annotations

import gc
import weakref

import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data
from tensorflow.python.framework.func_graph import FuncGraph

from gpflow_dwp import fit
from gpflow_dwp.linalg.factorisation import _escalation
from gpflow_dwp.training import EarlyStopping
from gpflow_dwp.training._trace import trace
from gpflow_dwp.training.loop import CompiledLoop


def functions_in_memory() -> int:
    gc.collect()
    return sum(issubclass(type(thing), FuncGraph) for thing in gc.get_objects())


@pytest.mark.usefixtures("few_objects")
def test_a_fit_leaves_no_function_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = []
    original = CompiledLoop.run

    def run(self: CompiledLoop, num_steps: int) -> object:
        loops.append(weakref.ref(self))
        return original(self, num_steps)

    monkeypatch.setattr(CompiledLoop, "run", run)
    model, data = tiny_model(2, posterior="AB"), toy_data()
    _escalation(tf.float64).get_concrete_function()  # one for all fits of the process
    before = functions_in_memory()

    fit(model, data, 2, batch_size=5, callbacks=[EarlyStopping(data)], progress=False)

    assert functions_in_memory() <= before
    assert {loop() for loop in loops} == {None}


@tf.custom_gradient
def doubled(x: tf.Tensor) -> tuple[tf.Tensor, object]:
    return x + 0.0, lambda upstream: 2.0 * upstream


def test_functions_that_others_call_keep_their_gradients() -> None:
    shared, x = tf.function(doubled, autograph=False), tf.constant(1.0)
    trace(lambda: shared(tf.ones([])))

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = shared(x)

    assert float(tape.gradient(y, x)) == 2.0


def test_gradients_from_elsewhere_are_kept() -> None:
    """Another function that is being traced at the same time has custom gradients of its own."""

    @tf.function(autograph=False)
    def outer(x: tf.Tensor) -> tf.Tensor:
        y = doubled(x)
        with tf.init_scope():
            trace(lambda: doubled(tf.ones([])))
        return tf.gradients(y, x)[0]

    assert float(outer(tf.constant(1.0))) == 2.0


@pytest.mark.usefixtures("eager")
def test_steps_can_be_followed_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger, and tests that have no time to compile, ask TensorFlow to compile nothing."""
    model, data = tiny_model(2), toy_data()
    were_eager = []
    original = type(model)._estimate_terms

    def estimate(*arguments: object, **settings: object) -> object:
        were_eager.append(tf.executing_eagerly())
        return original(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "_estimate_terms", estimate)
    history = fit(model, data, 2, callbacks=[EarlyStopping(data)], progress=False)

    assert history.num_steps == 2
    assert were_eager == [True, True]
