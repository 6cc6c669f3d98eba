"""Steps are compiled once for models that differ in numbers only, and do what fresh ones would."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from model_reference import toy_data

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import Adam
from gpflow_dwp.training._batches import make_batches
from gpflow_dwp.training._structure import holding, names_of, structure_of
from gpflow_dwp.training.loop import CompiledLoop, forget_steps

DATA = toy_data()
MORE = tuple(np.concatenate([part, 0.5 * part[:4]]) for part in DATA)


def regression_model(seed: int) -> DeepWishartProcess:
    quick: Any = {"num_inducing": 4, "posterior": "GW", "whiten": True}
    return build_deep_wishart_process(DATA, 2, **quick, seed=seed)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """An item for every time that a bound is traced; all objects of before are frozen."""
    original, calls = DeepWishartProcess._estimate_terms, []

    def estimate(self: DeepWishartProcess, *args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(DeepWishartProcess, "_estimate_terms", estimate)
    gc.freeze()
    yield calls
    gc.unfreeze()


def run(model: DeepWishartProcess, **settings: Any) -> list[np.ndarray]:
    """Train, and return the bounds and all values."""
    settings = {"data": DATA, "num_steps": 4, "batch_size": 5, "progress": False, **settings}
    history = fit(model, **settings)
    return [history.data_term, history.log_ratios, *(value.numpy() for value in model.variables)]


def test_a_second_fit_is_that_of_a_fresh_process(traces: list[object]) -> None:
    """Of the same model and of another one: a number of the first run left in it would show, and
    a model that kept steps hold on to."""

    def run_changed(model: DeepWishartProcess) -> list[np.ndarray]:
        model.set_data(MORE)
        model.likelihood.variance.assign(0.3)
        changed = {"seed": 5, "optimizer": Adam(1e-2), "num_steps": 3, "kl_annealing_steps": 1}
        return run(model, data=MORE, **changed)

    first, second, fresh = (regression_model(seed) for seed in (0, 1, 1))
    run(first)
    trained = [variable.numpy() for variable in first.variables]

    got = [*run_changed(second), *run_changed(first)]

    assert len(traces) == 1
    forget_steps()
    expected = run_changed(fresh)
    fresh.set_data(DATA)
    for variable, value in zip(fresh.variables, trained, strict=True):
        variable.assign(value)
    expected += run_changed(fresh)
    np.testing.assert_equal(got, expected)
    held = [weakref.ref(each) for each in (fresh, *fresh.variables)]
    del fresh, variable
    gc.collect()
    assert {reference() for reference in held} == {None}


PRIOR = tfp.distributions.Gamma(*np.array([2.0, 3.0]))
CHANGES: dict[str, Callable[[Any], None]] = {
    "more draws": lambda model: setattr(model, "num_samples", 7),
    "fixed noise": lambda model: gpflow.set_trainable(model.likelihood, False),
    "a prior": lambda model: setattr(model.likelihood.variance, "prior", PRIOR),
    "larger jitter": lambda model: setattr(model.output_layer, "jitter", 1e-3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_model_has_another_structure(change: Callable[[Any], None]) -> None:
    """A step kept for what the model was would train another bound without a word."""
    model, same = regression_model(0), regression_model(1)
    before = structure_of(model)
    assert structure_of(same) == before

    change(model)

    assert structure_of(model) != before


def test_only_the_models_own_number_of_data_is_held() -> None:
    """Catches another module's variable of that name that is taken for it."""
    model = regression_model(0)
    model.likelihood.num_data = own = tf.Variable(5.0)
    with holding(model, [own], [tf.constant(7.0)], tf.constant(3)):
        assert model.likelihood.num_data == 7.0 and model.num_data == 3
    assert model.likelihood.num_data is own and model.num_data == len(DATA[0])
    assert names_of(model, [own]) == [".likelihood.num_data"]  # which is no parameter


def test_parts_of_unknown_classes_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at without compiling; and all rows of other data are as many as they are."""
    monkeypatch.setattr(CompiledLoop, "_traced", lambda _: SimpleNamespace(captured_inputs=[]))

    def compiled(kernel: gpflow.kernels.Kernel, data: Any = DATA) -> object:
        model = build_deep_wishart_process(data, 1, num_inducing=4, kernel=[kernel])
        batches = make_batches(model, data, None, lambda num_rows: None, 0)
        assert batches.draw((tf.constant(1),), ()) == ((1,), ())
        return CompiledLoop(model, batches, Adam(), 0, as_seed(0))._compiled_run

    known = gpflow.kernels.SquaredExponential
    own = type("OwnKernel", (known,), {})  # who knows whether it does the same next time
    assert compiled(known()) is compiled(known())
    # On a GPU a function is for one number of rows.
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    assert (compiled(known()) is compiled(known(), MORE)) is not on_gpu
    assert compiled(own()) is not compiled(own())
