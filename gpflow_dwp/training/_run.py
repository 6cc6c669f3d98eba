"""The course of a training run: its steps, and all that happens between them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from tqdm import tqdm

from gpflow_dwp.interrupts import deferred_signals
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training._checkpoint import TrainingCheckpoint
from gpflow_dwp.training._failure import describe_failure
from gpflow_dwp.training.callbacks import Callback, RunCallback, TrainingProgress
from gpflow_dwp.training.distribution import Workers
from gpflow_dwp.training.history import TrainingHistory
from gpflow_dwp.training.loop import CompiledLoop, StepRecords

__all__ = ["TrainingRun"]

_SECONDS_PER_CALL = 0.5


class TrainingRun:
    """Takes the steps of a loop; between them come callbacks, Ctrl-C, checkpoints and progress.

    :param model: The model that the loop trains.
    :param loop: The loop, not yet used.
    :param num_steps: Number of gradient steps, with those that a checkpoint holds.
    :param callbacks: See :func:`gpflow_dwp.fit`.
    :param callback_interval: Steps between calls of the callbacks.
    :param checkpoint: Where the run's state is saved, and restored from here; None for nowhere.
    :param workers: The processes that take the steps together.
    :raises ValueError: If the checkpoint is of a run with other settings.
    """

    def __init__(
        self,
        model: VariationalModel,
        loop: CompiledLoop,
        num_steps: int,
        callbacks: Sequence[Callback],
        callback_interval: int,
        checkpoint: TrainingCheckpoint | None,
        workers: Workers,
    ) -> None:
        self._model = model
        self._loop = loop
        self._num_steps = num_steps
        self._callbacks = callbacks
        self._callback_interval = callback_interval
        self._checkpoint = checkpoint
        self._workers = workers
        past, seconds = BoundTerms(np.zeros(0), np.zeros((0, model.num_log_ratios))), 0.0
        if checkpoint is not None:
            past, seconds = checkpoint.restore() or (past, seconds)
        self._done = len(past.data)
        workers.check_same(
            {"steps": self._done}, "checkpoint_directory must be one folder that all workers see"
        )
        # The next call of the callbacks averages over all steps since the last one, resumed or not.
        self._records = _cut(past, self._done - self._done % callback_interval)
        self._reported = 1
        self._seconds_before = seconds

    def take_steps(self, progress: bool) -> TrainingHistory:
        """Take all steps that are left, or those until a callback or Ctrl-C ends the run.

        :param progress: Whether to show a progress bar.
        :raises NonFiniteBoundError: If a step's bound or gradient is not finite.
        """
        staged = [callback for callback in self._callbacks if isinstance(callback, RunCallback)]
        wishes = [callback.begin(self._done, self._model) for callback in staged]
        stop_reason = self._ended_by_callback() if self._workers.any(any(wishes)) else None
        start = time.perf_counter() - self._seconds_before
        with (
            deferred_signals(until_saved=self._checkpoint is not None) as interrupted,
            tqdm(
                total=self._num_steps,
                initial=self._done,
                disable=not (progress and self._workers.is_first),
                unit="step",
            ) as bar,
        ):
            for record in self._calls() if stop_reason is None else ():
                self._records.append(record)
                if record.failed:
                    raise describe_failure(self._model, self._loop, record, self._done)
                self._done += len(record.terms.data)
                bar.update(len(record.terms.data))
                bound = _mean_bound([record]) / self._model.num_data
                bar.set_postfix_str(f"bound per datum {bound:.3f}")
                if self._workers.any(self._call_callbacks(time.perf_counter() - start)):
                    stop_reason = self._ended_by_callback()
                    break
                if self._workers.any(interrupted()):
                    stop_reason = f"interrupted after step {self._done}"
                    break
                if self._checkpoint and self._checkpoint.is_due:
                    self._checkpoint.save(self._records, time.perf_counter() - start)
            if self._checkpoint:
                self._checkpoint.save(self._records, time.perf_counter() - start)
                self._workers.wait()  # so that none looks for a state that is not there yet
            for callback in staged:
                callback.finish(self._model)
        return TrainingHistory(
            np.concatenate([record.terms.data for record in self._records]),
            np.concatenate([record.terms.log_ratios for record in self._records]),
            int(self._model.num_data),
            time.perf_counter() - start,
            stop_reason or f"took all {self._num_steps} steps",
        )

    def _calls(self) -> Iterator[StepRecords]:
        """Take steps in calls of about half a second, ending where callbacks are to be called."""
        first, size = self._done, 1
        interval = self._callback_interval if self._callbacks else self._num_steps
        while self._done < self._num_steps:
            size = min(size, self._num_steps - self._done, interval - self._done % interval)
            start = time.perf_counter()
            record = self._loop.run(size)
            [seconds] = self._workers.mean(time.perf_counter() - start)
            yield record
            if self._done > first + 1:  # The first call was mostly tracing.
                size = max(1, int(size * min(10.0, _SECONDS_PER_CALL / max(seconds, 1e-6))))

    def _call_callbacks(self, seconds: float) -> bool:
        """Call them if it is time to, and say whether one of them wishes to end the run."""
        at_interval = self._done % self._callback_interval == 0
        if not self._callbacks or not (at_interval or self._done == self._num_steps):
            return False
        bound = _mean_bound(self._records[self._reported :])
        event = TrainingProgress(self._done, self._num_steps, bound, self._model, seconds)
        self._reported = len(self._records)
        wishes = [callback(event) for callback in self._callbacks]  # Of every one, in any case.
        return any(wishes)

    def _ended_by_callback(self) -> str:
        return f"a callback ended the run after step {self._done}"


def _cut(terms: BoundTerms, step: int) -> list[StepRecords]:
    """The records before a step and from it on."""
    return [
        StepRecords(BoundTerms(terms.data[part], terms.log_ratios[part]), False, np.array([]))
        for part in (slice(step), slice(step, None))
    ]


def _mean_bound(records: Sequence[StepRecords]) -> float:
    terms = [record.terms for record in records]
    data = np.concatenate([term.data for term in terms])
    log_ratios = np.concatenate([term.log_ratios for term in terms])
    return float(np.mean(data + log_ratios.sum(axis=1)))
