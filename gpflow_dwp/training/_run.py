"""What happens in a training run between its steps."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from tqdm import tqdm

from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.variational import describe_non_finite
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training._checkpoint import TrainingCheckpoint
from gpflow_dwp.training._structure import names_of
from gpflow_dwp.training.callbacks import (
    SHOWN_OFFSET,
    Callback,
    RunCallback,
    TrainingHistory,
    TrainingProgress,
    joined,
)
from gpflow_dwp.training.distribution import Devices
from gpflow_dwp.training.loop import CompiledLoop

__all__ = ["TrainingRun", "deferred_signals"]

_SECONDS_PER_CALL = 0.5
# That of a terminal that closes is not everywhere.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@dataclasses.dataclass
class TrainingRun:
    """Takes the steps of a loop; between them come callbacks, Ctrl-C, checkpoints and progress.

    The arguments are those of :func:`gpflow_dwp.fit`, or made of them.

    :param loop: The loop, not yet used.
    :param num_steps: Number of gradient steps, with those that a checkpoint holds.
    :param checkpoint: Where the run's state is saved, and restored from here; None for nowhere.
    :raises ValueError: If the checkpoint is of a run with other settings.
    """

    model: VariationalModel
    loop: CompiledLoop
    num_steps: int
    callbacks: Sequence[Callback]
    callback_interval: int
    checkpoint: TrainingCheckpoint | None
    devices: Devices

    def __post_init__(self) -> None:
        past, seconds = BoundTerms(np.zeros(0), np.zeros((0, self.model.num_log_ratios))), 0.0
        if self.checkpoint is not None:
            past, seconds = self.checkpoint.restore() or (past, seconds)
        self._done = len(past.data)
        if self.devices.any(abs(self.devices.mean(self._done) - self._done) > 1e-3):
            raise ValueError(
                "checkpoint_directory must be one folder that all processes see, got one with "
                f"{self._done} steps here, and others elsewhere."
            )
        # The next call of the callbacks averages over all steps since the last one, resumed or not.
        last = self._done - self._done % self.callback_interval
        parts = slice(last), slice(last, None)
        self._parts = [BoundTerms(*(each[part] for each in past)) for part in parts]
        self._reported = 1
        self._start = time.perf_counter() - seconds

    def take_steps(self, progress: bool) -> TrainingHistory:
        """Take all steps that are left, or those until a callback or Ctrl-C ends the run.

        :raises NonFiniteBoundError: If a step's bound or gradient is not finite.
        """
        staged = [callback for callback in self.callbacks if isinstance(callback, RunCallback)]
        wishes = [callback.begin(self._done, self.model) for callback in staged]
        stop_reason = self._ended_by_callback() if self.devices.any(any(wishes)) else None
        # A bar is for a terminal or a notebook, not for a file or a pipe.
        is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules
        with (
            deferred_signals(until_saved=self.checkpoint is not None) as interrupted,
            tqdm(
                total=self.num_steps,
                initial=self._done,
                disable=not (progress and self.devices.is_first and is_watched),
                unit="step",
                desc="compiling",
            ) as bar,
        ):
            first = bar.n
            for terms in self._calls() if stop_reason is None else ():
                self._parts.append(terms)
                if self.loop.failed:
                    raise self._failure(terms)
                self._done += len(terms.data)
                bar.set_description_str("", refresh=False)
                if bar.n == first:  # Steps that are left need not be compiled.
                    bar.unpause()
                bar.update(len(terms.data))
                bound = _mean(terms) / self.model.num_data + SHOWN_OFFSET.get()
                bar.set_postfix_str(f"{self.model.objective_name} per datum {bound:.3f}")
                if self.devices.any(self._call_callbacks()):
                    stop_reason = self._ended_by_callback()
                    break
                if self.devices.any(interrupted()):
                    stop_reason = f"interrupted after step {self._done}"
                    break
                if self.checkpoint and self.checkpoint.is_due:
                    self.checkpoint.save(joined(self._parts), self._seconds)
            if self.checkpoint:
                self.checkpoint.save(joined(self._parts), self._seconds)
                self.devices.mean(0.0)  # so that none looks for a state that is not there yet
            self.loop.finish()
            for callback in staged:
                callback.finish(self.model)
        return TrainingHistory(
            *joined(self._parts),
            int(self.model.num_data),
            self._seconds,
            stop_reason or f"took all {self.num_steps} steps",
            self.loop.annealing_steps,
        )

    def _calls(self) -> Iterator[BoundTerms]:
        """Take steps in calls of about half a second, ending where callbacks are to be called."""
        first, size = self._done, 1
        interval = self.callback_interval if self.callbacks else self.num_steps
        while self._done < self.num_steps:
            size = min(size, self.num_steps - self._done, interval - self._done % interval)
            start = time.perf_counter()
            terms = self.loop.run(size)
            seconds = self.devices.mean(time.perf_counter() - start)
            yield terms
            if self._done > first + 1:  # The first call was mostly tracing.
                size = max(1, int(size * min(10.0, _SECONDS_PER_CALL / max(seconds, 1e-6))))

    def _call_callbacks(self) -> bool:
        """Call them if it is time to, and say whether one of them wishes to end the run."""
        at_interval = self._done % self.callback_interval == 0
        if not self.callbacks or not (at_interval or self._done == self.num_steps):
            return False
        bound = _mean(joined(self._parts[self._reported :]))
        event = TrainingProgress(self._done, self.num_steps, bound, self.model, self._seconds)
        self._reported = len(self._parts)
        wishes = [callback(event) for callback in self.callbacks]  # Of every one, in any case.
        return any(wishes)

    def _failure(self, terms: BoundTerms) -> NonFiniteBoundError:
        """Say which part of the model the last of the steps broke."""
        step = self._done + len(terms.data) - 1
        where = describe_non_finite(self.model, BoundTerms(*(part[-1] for part in terms)))
        if where is None:
            names = names_of(self.model, self.loop.without_finite_gradient())
            where = (
                f"the gradient of {', '.join(names)} is" if names else "the log prior density is"
            )
        return NonFiniteBoundError(
            f"Training stopped at step {step}: {where} not finite. The model holds the last state "
            "whose bound was finite. Try a smaller learning rate, a larger jitter or float64.",
            step=step,
        )

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._start

    def _ended_by_callback(self) -> str:
        return f"a callback ended the run after step {self._done}"


def _mean(terms: BoundTerms) -> float:
    return float(np.mean(terms.data + terms.log_ratios.sum(axis=1)))


@contextlib.contextmanager
def deferred_signals(*, until_saved: bool) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag; a second one interrupts at once, as usual.

    :param until_saved: Whether SIGTERM and SIGHUP are deferred, too. At the end of the context
        happens what they would have done at once. Where they are ignored, they stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    seen: list[int] = []
    previous = {}
    for number in (signal.SIGINT, *(_ENDING if until_saved else ())):
        handler = signal.getsignal(number)
        # None: of a library that is not Python's, which could not be put back.
        if handler is not None and (number == signal.SIGINT or handler != signal.SIG_IGN):
            previous[number] = handler

    def handle(number: int, frame: object) -> None:
        seen.append(number)
        signal.signal(number, previous[number])

    for number in previous:
        signal.signal(number, handle)
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for number in seen:
            if number != signal.SIGINT:
                signal.raise_signal(number)
