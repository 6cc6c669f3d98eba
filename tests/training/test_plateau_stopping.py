"""Stopping on a plateau of the bound: when a run ends, and what survives an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import PlateauStopping, TrainingHistory, TrainingProgress

DATA = toy_data()
MODEL = tiny_model(1)
NOISE = np.array([0.3, -0.3, -0.3, 0.3])


def steps_until_it_ends(stopping: PlateauStopping, bounds: Sequence[float]) -> int | None:
    """Feed bounds of one step each; the number at which the run is ended."""
    assert not stopping.begin(0, MODEL)
    for step, bound in enumerate(bounds, 1):
        if stopping(TrainingProgress(step, len(bounds), float(bound), MODEL, 0.0)):
            return step
    return None


def test_a_gain_within_the_noise_ends_the_run() -> None:
    """Catches a gain that is compared with the wrong halves, or a noise that is no standard error.

    The deviation within each half, 0.35 with three degrees of freedom, makes that 0.245.
    """
    for gain, end in ((0.24, 8), (0.25, None)):
        bounds = np.concatenate([NOISE, gain + NOISE])
        assert steps_until_it_ends(PlateauStopping(4), bounds) == end
    growing = np.concatenate([np.arange(12.0), np.full(8, 12.0)])
    assert steps_until_it_ends(PlateauStopping(4), growing + np.tile(NOISE, 5)) == 19
    assert steps_until_it_ends(PlateauStopping(4), -np.arange(8.0)) == 8


def test_a_least_gain_is_per_datum() -> None:
    bounds = 0.5 * MODEL.num_data * np.arange(6.0)  # A gain of one nat per datum in two steps.
    assert steps_until_it_ends(PlateauStopping(2, min_gain=0.99), bounds) is None
    assert steps_until_it_ends(PlateauStopping(2, min_gain=1.01), bounds) == 4


def test_nothing_is_looked_at_before_the_start() -> None:
    """Catches a bound that fell in the annealing, and an average that reaches back into it."""
    stopping = PlateauStopping(2, start_step=3)
    assert steps_until_it_ends(stopping, [9.0, 6.0, 3.0, 0.0, 1.0, 2.0, 3.0, 3.0]) is None
    assert stopping.steps == [4, 5, 6, 7, 8]
    assert steps_until_it_ends(stopping, [0.0, 0.0, 0.0, 3.0, 2.0, 1.0, 0.0]) == 7


def test_a_run_that_was_cut_off_stops_where_it_would_have(tmp_path: Path) -> None:
    def train(cut_at: int | None = None, **arguments: Any) -> TrainingHistory:
        callbacks = [
            PlateauStopping(2, min_gain=1e9, start_step=2),
            lambda progress: progress.step == cut_at,
        ]
        arguments = {"callback_interval": 2, "progress": False, **arguments}
        return fit(tiny_model(1), DATA, 14, callbacks=callbacks, **arguments)

    whole = train()
    train(6, checkpoint_directory=tmp_path)
    resumed = train(checkpoint_directory=tmp_path)
    again = train(checkpoint_directory=tmp_path)

    reason = "a callback ended the run after step 10"
    assert whole.stop_reason == resumed.stop_reason == again.stop_reason == reason
    np.testing.assert_array_equal(resumed.elbo, whole.elbo)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 1}, "window must be an integer of at least 2, got 1"),
        ({"min_gain": -0.1}, "min_gain must not be negative, got -0.1"),
        ({"start_step": -1}, "start_step must be an integer of at least 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PlateauStopping(**arguments)
