"""What a run shows while it lasts, and what it leaves behind."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.training import TrainingHistory, TrainingProgress
from gpflow_dwp.training.callbacks import RunCallback


class Witness(RunCallback, tf.Module):
    """Notes what it is told; its variable counts calls, and is part of checkpoints."""

    def __init__(self, answer: bool = False, end: int = 100) -> None:
        super().__init__()
        self.told: list[tuple[str, int]] = []
        self.count = tf.Variable(0, trainable=False)
        self._answer, self._end = answer, end

    def begin(self, step: int, model: DeepWishartProcess) -> bool:
        self.told.append(("begin", step))
        return self._answer

    def __call__(self, progress: TrainingProgress) -> bool:
        self.told.append(("call", progress.step))
        self.count.assign_add(1)
        return progress.step >= self._end

    def finish(self, model: DeepWishartProcess) -> None:
        self.told.append(("finish", int(self.count)))


def run(*callbacks: Any, directory: Path | None = None) -> TrainingHistory:
    arguments: dict[str, Any] = {"checkpoint_directory": directory, "progress": False}
    return fit(tiny_model(1), toy_data(), 6, callbacks=callbacks, callback_interval=2, **arguments)


def test_the_beginning_and_the_end_are_told() -> None:
    witness = Witness()

    run(witness)

    calls = [("call", step) for step in (2, 4, 6)]
    assert witness.told == [("begin", 0), *calls, ("finish", 3)]


def test_a_callback_with_variables_goes_on_where_it_was(tmp_path: Path) -> None:
    first, second = Witness(end=4), Witness()

    run(first, directory=tmp_path)
    run(second, directory=tmp_path)

    assert first.told[-1] == ("finish", 2)
    assert second.told == [("begin", 4), ("call", 6), ("finish", 3)]


def test_a_callback_can_end_a_run_before_it_begins() -> None:
    witness = Witness(answer=True)

    history = run(witness)

    assert (history.num_steps, history.log_ratios.shape) == (0, (0, 1))
    assert history.stop_reason == "a callback ended the run after step 0"
    assert witness.told == [("begin", 0), ("finish", 0)]


HISTORY = TrainingHistory(
    data_term=np.array([1.0, 2.0]),
    log_ratios=np.array([[-1.0, -2.0], [-3.0, -5.0]]),
    num_data=4,
    seconds=0.1,
    stop_reason="took all 2 steps",
)


def test_the_bound_is_the_sum_of_its_terms() -> None:
    np.testing.assert_allclose(HISTORY.elbo, [-2.0, -6.0])
    np.testing.assert_allclose(HISTORY.elbo_per_datum, [-0.5, -1.5])
    assert HISTORY.num_steps == 2


def test_it_is_shown_in_one_line() -> None:
    ended = "<TrainingHistory of 2 steps in 0.1 s, elbo_per_datum ends at -1.5: took all 2 steps>"
    assert repr(HISTORY) == ended

    nothing = dataclasses.replace(HISTORY, data_term=np.zeros(0), log_ratios=np.zeros((0, 2)))
    assert repr(nothing) == "<TrainingHistory of 0 steps in 0.1 s: took all 2 steps>"


def test_a_run_that_goes_on_is_one_course() -> None:
    """Catches steps that are lost, and a time or an end that is the first run's alone."""
    both = HISTORY.followed_by(dataclasses.replace(HISTORY, data_term=np.array([5.0, 6.0])))
    np.testing.assert_allclose(both.data_term, [1.0, 2.0, 5.0, 6.0])
    assert (both.num_steps, both.log_ratios.shape, both.seconds) == (4, (4, 2), 0.2)
    assert both.stop_reason == "took all 2 steps, then took all 2 steps"


def test_a_bar_is_shown_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch bars in a log file, and one that does not say that it compiles."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of other tests
    fit(tiny_model(1), toy_data(), 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    history = fit(tiny_model(1), toy_data(), 1)
    shown = capsys.readouterr().err
    assert "compiling" in shown and f"ELBO per datum {history.elbo_per_datum[0]:.3f}" in shown
