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


def run(callback: RunCallback, directory: Path | None = None) -> TrainingHistory:
    arguments: Any = {"callback_interval": 2, "checkpoint_directory": directory, "progress": False}
    return fit(tiny_model(1), toy_data(), 6, callbacks=[callback], **arguments)


def test_beginning_and_end_are_told_and_variables_go_on_where_they_were(tmp_path: Path) -> None:
    first, second = Witness(end=4), Witness()

    run(first, tmp_path)
    run(second, tmp_path)

    assert first.told == [("begin", 0), ("call", 2), ("call", 4), ("finish", 2)]
    assert second.told == [("begin", 4), ("call", 6), ("finish", 3)]


def test_a_callback_can_end_a_run_before_it_begins() -> None:
    witness = Witness(answer=True)

    history = run(witness)

    assert (history.num_steps, history.log_ratios.shape) == (0, (0, 1))
    assert history.stop_reason == "a callback ended the run after step 0"
    assert witness.told == [("begin", 0), ("finish", 0)]


def test_a_history_sums_terms_is_shown_in_one_line_and_goes_on() -> None:
    """Catches steps that are lost, and a time or an end that is the first run's alone."""
    ratios = np.array([[-1.0, -2.0], [-3.0, -5.0]])
    history = TrainingHistory(np.array([1.0, 2.0]), ratios, 4, 0.1, "took all 2 steps")
    np.testing.assert_allclose(history.elbo, [-2.0, -6.0])
    ended = "<TrainingHistory of 2 steps in 0.1 s, elbo_per_datum ends at -1.5: took all 2 steps>"
    assert repr(history) == ended
    nothing = dataclasses.replace(history, data_term=np.zeros(0), log_ratios=np.zeros((0, 2)))
    assert repr(nothing) == "<TrainingHistory of 0 steps in 0.1 s: took all 2 steps>"

    both = history.followed_by(dataclasses.replace(history, data_term=np.array([5.0, 6.0])))
    np.testing.assert_allclose(both.data_term, [1.0, 2.0, 5.0, 6.0])
    assert (both.num_steps, both.log_ratios.shape, both.seconds) == (4, (4, 2), 0.2)
    assert both.stop_reason == "took all 2 steps, then took all 2 steps"


@pytest.mark.usefixtures("eager")
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
