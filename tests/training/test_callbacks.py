"""When callbacks are told of a run's beginning and end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
