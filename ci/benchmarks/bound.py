"""How long it takes until the bound stays above a value, by two protocols and by a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class BoundRun(NamedTuple):
    """How a training run came to the bound.

    :param step: The step after which the bound, as a mean over 50 steps, stayed above to the end of
        the run; None where the run ended below.
    :param seconds: Processor time until then, tracing and compilation included; or None.
    :param last_step: Steps that were taken.
    :param last_bound: The bound per datum over the last 50 of them, in nats.
    :param all_seconds: Processor time of them all.
    """

    step: int | None
    seconds: float | None
    last_step: int
    last_bound: float
    all_seconds: float


class BoundWatch:
    """A callback that notes since when the bound has been above a level, and ends a run.

    :param level: Per datum, in nats.
    :param hold: After how many steps above it the run ends.
    :param num_data: Number of training rows, N.
    :ivar run: What became of the run so far.
    """

    def __init__(self, level: float, hold: int, num_data: int) -> None:
        self._level, self._hold, self._num_data = level, hold, num_data
        self._start = time.process_time()
        self.run = BoundRun(None, None, 0, float("nan"), 0.0)

    def __call__(self, progress: Any) -> bool:
        """Take in a progress of training; return whether to end it."""
        bound, seconds = progress.elbo / self._num_data, time.process_time() - self._start
        since = (self.run.step, self.run.seconds) if self.run.step else (progress.step, seconds)
        step, until_then = since if bound > self._level else (None, None)
        self.run = BoundRun(step, until_then, progress.step, bound, seconds)
        return step is not None and progress.step - step >= self._hold


def prepare_run(
    place: Sequence[Any], protocol: str, num_steps: int, level: float, hold: int
) -> Callable[[int], BoundRun]:
    """Train a new model until its bound has stayed above a level.

    :param place: Data set, split, folder of data sets, model, depth and seed.
    """
    from benchmarks.models import posterior_arguments
    from uci.splits import load_uci

    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import PROTOCOLS, fit

    dataset, split, folder, model, depth, seed = place
    data = load_uci(dataset, split, folder=folder).train
    name: Any = protocol

    def run(times: int) -> BoundRun:
        built = build_deep_wishart_process(
            data,
            depth,
            seed=seed,
            output="pseudo_targets" if protocol == "papers" else None,
            num_samples=PROTOCOLS[name].num_samples,
            **posterior_arguments(model),
        )
        watch = BoundWatch(level, hold, len(data[0]))
        fit(
            built,
            data,
            num_steps,
            protocol=name,
            seed=seed,
            callbacks=[watch],
            callback_interval=min(50, num_steps),
            progress=False,
        )
        return watch.run

    return run


def prepare_search(place: Sequence[Any], num_steps: int, level: float) -> Callable[[int], BoundRun]:
    """Select a model of one depth, kernel and noise, from a Gaussian process on.

    :param place: As for :func:`prepare_run`.
    """
    from benchmarks.models import posterior_arguments
    from uci.splits import load_uci

    from gpflow_dwp.selection import select_model

    dataset, split, folder, model, depth, seed = place
    data = load_uci(dataset, split, folder=folder).train
    arguments: dict[str, Any] = {
        "depth": depth,
        "kernel": "SquaredExponential",
        "likelihood": "gaussian",
        **posterior_arguments(model),
    }

    def run(times: int) -> BoundRun:
        began = time.process_time()
        selection = select_model(data, num_steps=num_steps, seed=seed, progress=False, **arguments)
        seconds = time.process_time() - began
        bound = selection.best.elbo / len(data[0])
        ended = BoundRun(num_steps, seconds, num_steps, bound, seconds)
        return ended if bound > level else ended._replace(step=None, seconds=None)

    return run
