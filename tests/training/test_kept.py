"""Steps are compiled once for models that differ in numbers only, and do what fresh ones would."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from model_reference import toy_data

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.training import Adam
from gpflow_dwp.training._batches import are_on_gpu
from gpflow_dwp.training._structure import structure_of
from gpflow_dwp.training.loop import forget_steps

DATA = toy_data()
MORE = tuple(np.concatenate([part, 0.5 * part[:4]]) for part in DATA)


def regression_model(seed: int = 0, depth: int = 2) -> DeepWishartProcess:
    quick = {"num_inducing": 4, "posterior": "GW", "whiten": True}
    return build_deep_wishart_process(DATA, depth, **quick, seed=seed)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """An item for every time that a bound is traced."""
    original, calls = DeepWishartProcess._estimate_terms, []

    def estimate(self: DeepWishartProcess, *args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(DeepWishartProcess, "_estimate_terms", estimate)
    return calls


def run(model: DeepWishartProcess, **settings: Any) -> list[np.ndarray]:
    """Train, and return the bounds and all values."""
    settings = {"data": DATA, "num_steps": 4, "progress": False, **settings}
    history = fit(model, **settings)
    return [history.data_term, history.log_ratios, *(value.numpy() for value in model.variables)]


@pytest.mark.parametrize("batch_size", [None, 5])
def test_a_second_fit_is_that_of_a_fresh_process(
    batch_size: int | None, traces: list[object]
) -> None:
    """Of the same model and of another one: a number of the first run left in it would show."""

    def run_changed(model: DeepWishartProcess) -> list[np.ndarray]:
        model.set_data(MORE)
        model.likelihood.variance.assign(0.3)
        changed = {"seed": 5, "optimizer": Adam(1e-2), "num_steps": 3, "kl_annealing_steps": 1}
        return run(model, data=MORE, batch_size=batch_size, **changed)

    depth = 2 if batch_size else 1
    first, second, fresh = (regression_model(seed, depth) for seed in (0, 1, 1))
    run(first, batch_size=batch_size)
    trained = [variable.numpy() for variable in first.variables]

    got = [*run_changed(second), *run_changed(first)]

    # On a GPU a function is for one number of rows.
    assert len(traces) == (2 if batch_size is None and are_on_gpu(first.variables) else 1)
    forget_steps()
    expected = run_changed(fresh)
    fresh.set_data(DATA)
    for variable, value in zip(fresh.variables, trained, strict=True):
        variable.assign(value)
    expected += run_changed(fresh)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def with_more_draws(model: DeepWishartProcess) -> None:
    model.num_samples += 1


def with_fixed_noise(model: DeepWishartProcess) -> None:
    gpflow.set_trainable(model.likelihood, False)


def with_a_prior(model: DeepWishartProcess) -> None:
    model.likelihood.variance.prior = tfp.distributions.Gamma(*np.array([2.0, 3.0]))


def with_larger_jitter(model: DeepWishartProcess) -> None:
    model.output_layer.jitter = 1e-3


@pytest.mark.parametrize(
    "change", [with_more_draws, with_fixed_noise, with_a_prior, with_larger_jitter]
)
def test_a_changed_model_has_another_structure(
    change: Callable[[DeepWishartProcess], None],
) -> None:
    """A step kept for what the model was would train another bound without a word."""
    model, same = regression_model(0), regression_model(1)
    before = structure_of(model)
    assert structure_of(same) == before

    change(model)

    assert structure_of(model) != before


class OwnKernel(gpflow.kernels.SquaredExponential):
    """A class from elsewhere, of which nobody knows whether it does the same next time."""


def test_parts_of_unknown_classes_are_compiled_anew(traces: list[object]) -> None:
    model = build_deep_wishart_process(DATA, 1, num_inducing=4, kernel=[OwnKernel()])
    for _ in range(2):
        run(model)

    assert len(traces) == 2


@pytest.mark.usefixtures("few_objects")
def test_kept_steps_keep_no_model() -> None:
    model = regression_model()
    run(model)
    held = [weakref.ref(model), *(weakref.ref(variable) for variable in model.variables)]

    del model
    gc.collect()

    assert {reference() for reference in held} == {None}
