"""The end of a trial that will not be kept."""

from __future__ import annotations

import math

from gpflow_dwp.training import TrainingProgress

__all__ = ["GiveUp"]


class GiveUp:
    """A callback that ends a run whose bound would not reach a target at its present pace.

    The pace falls with the learning rate, so half of it is counted on.
    """

    def __init__(self, target: float, interval: int, begin: int) -> None:
        self._target = target
        self._interval = interval
        self._begin = begin
        self._last = -math.inf

    def __call__(self, progress: TrainingProgress) -> bool:
        last, self._last = self._last, progress.elbo
        if progress.step < self._begin + self._interval:
            return False
        calls_left = (progress.num_steps - progress.step) / self._interval
        return progress.elbo + 0.5 * calls_left * (progress.elbo - last) < self._target
