"""Early stopping: when a run ends, what is kept, and what survives an interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpflow.utilities import read_values
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.training import EarlyStopping, TrainingHistory, TrainingProgress

DATA = toy_data()
HELD_OUT = toy_data(7, seed=1)


def scripted(*scores: float) -> Callable[..., float]:
    """A metric that takes these values in turn."""
    remaining = list(scores)
    return lambda *_: remaining.pop(0)


def run(
    stopping: EarlyStopping, num_steps: int = 12, also: Any = lambda _: None, **arguments: Any
) -> tuple[DeepWishartProcess, TrainingHistory, dict[int, dict[str, np.ndarray]]]:
    """Train, and note the parameters that every call of the callbacks saw."""
    model, seen = tiny_model(1), {}

    def note(progress: TrainingProgress) -> None:
        seen[progress.step] = read_values(progress.model)

    arguments = {"callbacks": [stopping, note, also], "callback_interval": 2, **arguments}
    history = fit(model, DATA, num_steps, progress=False, **arguments)
    return model, history, seen


def test_it_ends_the_run_when_patience_is_over_and_restores_the_best() -> None:
    stopping = EarlyStopping(HELD_OUT, scripted(1.0, 3.0, 2.0, 3.0, 9.0), patience=2)
    model, history, seen = run(stopping)

    assert history.stop_reason == "a callback ended the run after step 8"
    assert (stopping.steps, stopping.values) == ([2, 4, 6, 8], [1.0, 3.0, 2.0, 3.0])
    assert (stopping.best_step, stopping.best_value) == (4, 3.0)
    np.testing.assert_equal(read_values(model), seen[4])
    assert np.any(seen[4][".likelihood.variance"] != seen[8][".likelihood.variance"])


def test_a_run_that_takes_all_its_steps_ends_with_the_best_too() -> None:
    """Steps before the first that is judged, and metrics that are no numbers, do not count."""
    stopping = EarlyStopping(HELD_OUT, scripted(np.nan, 1.0, np.nan), patience=3, start_step=3)
    model, history, seen = run(stopping, 8)

    assert history.stop_reason == "took all 8 steps"
    assert (stopping.steps, stopping.best_step) == ([4, 6, 8], 6)
    np.testing.assert_equal(read_values(model), seen[6])


@pytest.mark.usefixtures("eager")
def test_the_metric_is_the_log_density_of_the_models_predictions() -> None:
    stopping, expected = EarlyStopping(HELD_OUT, num_samples=7, seed=3), []

    def note(progress: TrainingProgress) -> None:
        posterior = progress.model.posterior(7, seed=3)
        expected.append(posterior.predict_log_density(HELD_OUT).numpy().mean())

    model = tiny_model(2, posterior="GW", whiten=True)
    fit(model, DATA, 2, callbacks=[stopping, note], callback_interval=1, progress=False)

    np.testing.assert_allclose(stopping.values, expected, rtol=1e-9)
    assert stopping.best_value == max(stopping.values)


def test_a_run_that_was_cut_off_stops_where_it_would_have(tmp_path: Path) -> None:
    def cut_off(progress: TrainingProgress) -> bool:
        return progress.step == 6

    def train(*scores: float, place: Path | None = tmp_path, **also: Any) -> tuple[Any, ...]:
        stopping = EarlyStopping(HELD_OUT, scripted(*scores), patience=3)
        return stopping, *run(stopping, checkpoint_directory=place, **also)

    _, _, expected, seen = train(1.0, 3.0, 2.0, 2.0, 2.0, place=None)
    _, first, _, _ = train(1.0, 3.0, 2.0, also=cut_off)
    stopping, resumed, history, _ = train(2.0, 2.0)
    _, again, no_history, _ = train()

    assert stopping.steps == [2, 4, 6, 8, 10]
    for each in (expected, history, no_history):
        assert each.stop_reason == "a callback ended the run after step 10"
        np.testing.assert_array_equal(each.elbo, expected.elbo)
    for model in (first, resumed, again):
        np.testing.assert_equal(read_values(model), seen[4])
    with pytest.raises(ValueError, match=r"callbacks=\['EarlyStopping'\], got \[\]"):
        run(stopping, callbacks=[cut_off], checkpoint_directory=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"patience": 0}, "patience must be a positive integer, got 0"),
        ({"start_step": -1}, "start_step must be an integer of at least 0, got -1"),
        ({"num_samples": 0}, "num_samples must be a positive integer, got 0"),
        ({"data": DATA[0]}, r"data must be a pair \(X, Y\), or three, .* got ndarray"),
        ({"data": (DATA[0], DATA[1][:3])}, "data must hold as many X as Y, got 12 and 3 rows"),
        ({"data": (DATA[0], DATA[1][:, 0])}, r"data\[1\] must have two axes, \[rows, columns\]"),
        ({"data": (DATA[0], DATA[1] * np.nan)}, r"data\[1\] holds nan in row 1, column 1"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EarlyStopping(**({"data": HELD_OUT} | arguments))
