"""How long it takes until the bound stays above a value, by two protocols of training."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpflow_dwp.data import UCI_DATASETS, load_uci
from gpflow_dwp.lab.benchmarks.measurement import Figure
from gpflow_dwp.lab.benchmarks.subjects import WISHART_MODELS
from gpflow_dwp.lab.study import published_scores, thread_environment
from gpflow_dwp.validation import check_choice, check_integers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpflow_dwp.models import VariationalModel
    from gpflow_dwp.training import ProtocolName, TrainingProgress

__all__ = [
    "BoundRun",
    "BoundTask",
    "benchmark_bound",
    "printed_bound",
    "train_to_bound",
]

_AT_MOST = 0.1
_BEHIND_PRINT = 0.02
_STEPS_OF_A_MEAN = 50


class BoundTask(NamedTuple):
    """One training run: a deep Wishart process on a UCI data set, as a protocol has it.

    :param dataset: Name of the data set.
    :param split: Its split.
    :param uci_folder: Where data sets are; None for :func:`~gpflow_dwp.data.load_uci`'s default.
    :param model: One of :data:`WISHART_MODELS`.
    :param depth: Number of layers.
    :param protocol: "fast", with the builder's defaults; or "papers", with ten draws and an output
        layer that is learned.
    :param num_steps: Steps of the whole run, which its schedules know.
    :param level: The bound to pass, per datum, in nats.
    :param hold: After how many steps above it the run ends, if its schedule does not end before.
    :param seed: For the start and all draws.
    """

    dataset: str
    split: int
    uci_folder: str | None
    model: str
    depth: int
    protocol: ProtocolName
    num_steps: int
    level: float
    hold: int
    seed: int


class BoundRun(NamedTuple):
    """How a training run came to the bound.

    :param step: The step after which the bound, as a mean over 50 steps, stayed above to the end of
        the run; None where the run ended below.
    :param seconds: Processor time until then, in s, tracing and compilation included; or None.
    :param last_step: Steps that were taken.
    :param last_bound: The bound per datum over the last 50 of them, in nats.
    :param all_seconds: Processor time of them all, in s.
    """

    step: int | None
    seconds: float | None
    last_step: int
    last_bound: float
    all_seconds: float


class _Watch:
    """A callback that notes since when the bound has been above a level."""

    def __init__(self, level: float, hold: int, num_data: int) -> None:
        self._level = level
        self._hold = hold
        self._num_data = num_data
        self._start = time.process_time()
        self.run = BoundRun(None, None, 0, float("nan"), 0.0)

    def __call__(self, progress: TrainingProgress) -> bool:
        bound, seconds = progress.elbo / self._num_data, time.process_time() - self._start
        since = (self.run.step, self.run.seconds) if self.run.step else (progress.step, seconds)
        step, until_then = since if bound > self._level else (None, None)
        self.run = BoundRun(step, until_then, progress.step, bound, seconds)
        return step is not None and progress.step - step >= self._hold


def train_to_bound(
    model: VariationalModel,
    data: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    level: float,
    *,
    protocol: ProtocolName = "fast",
    num_steps: int = 20_000,
    hold: int = 1_000,
    seed: int = 0,
) -> BoundRun:
    """Train a model until its bound has stayed above a level.

    :param model: The model, changed in place.
    :param data: X [N, D] and Y [N, P].
    :param level: See :class:`BoundTask`, as all others.
    :raises ValueError: If an argument cannot be used; no step has been taken then.
    """
    from gpflow_dwp.training import PROTOCOLS, fit

    check_integers(hold=hold, num_steps=num_steps)
    check_choice(PROTOCOLS, protocol=protocol)
    watch = _Watch(level, hold, len(data[0]))
    fit(
        model,
        data,
        num_steps,
        protocol=protocol,
        seed=seed,
        callbacks=[watch],
        callback_interval=min(_STEPS_OF_A_MEAN, num_steps),
        progress=False,
    )
    return watch.run


def printed_bound(dataset: str, depth: int, model: str) -> float:
    """Return the ELBO per datum that the improved paper prints, in nats.

    :raises ValueError: If it prints none.
    :raises ImportError: If pandas is not installed.
    """
    table = published_scores().query("paper == 'improved' and metric == 'elbo'")
    wanted = (table["dataset"] == dataset) & (table["depth"] == depth) & (table["model"] == model)
    if not wanted.any():
        raise ValueError(
            f"level must be given: no ELBO of {model} of depth {depth} on {dataset} is printed."
        )
    return float(table.loc[wanted, "mean"].iloc[0])


def benchmark_bound(
    dataset: str = "yacht",
    depth: int = 2,
    model: str = "A",
    *,
    split: int = 0,
    level: float | None = None,
    num_steps: int = 3_000,
    papers_steps: int = 20_000,
    hold: int = 1_000,
    seed: int = 0,
    threads: int = 1,
    uci_folder: str | Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train by the default protocol and by the papers', beside each other, to the same bound.

    Each has a process of its own, and the one that is done first goes on, so that both have a
    neighbour all the time. Times are processor times, which other processes change less.

    :param dataset: Name of a UCI data set; see :class:`BoundTask` for what is not said here.
    :param level: None for what the improved paper prints, less 0.02.
    :param num_steps: Steps of the default protocol's run. Its learning rate falls to the end of
        them, so that a bound is passed late in a run that is just long enough.
    :param papers_steps: Steps of the papers' protocol's.
    :param threads: Threads of each process.
    :param report: Called with a line of progress.
    :return: Under a title "figures", a list of :class:`Figure` as dictionaries, and "runs", each a
        :class:`BoundRun` as a dictionary. Where a run ended below the level, figures that need it
        are left out. Each is of one run: a spread of 0 stands for none that was measured.
    :raises ValueError: If an argument cannot be used; nothing has been trained then.
    :raises RuntimeError: If a process fails.
    """
    check_choice(UCI_DATASETS, dataset=dataset)
    check_choice(WISHART_MODELS, model=model)
    check_integers(
        depth=depth, num_steps=num_steps, papers_steps=papers_steps, hold=hold, threads=threads
    )
    load_uci(dataset, split, folder=uci_folder)  # refuses here what the processes would
    if level is None:
        level = printed_bound(dataset, depth, model) - _BEHIND_PRINT
    if not math.isfinite(level):
        raise ValueError(f"level must be finite, got {level}.")
    folder = None if uci_folder is None else str(Path(uci_folder).resolve())
    steps: dict[ProtocolName, int] = {"fast": num_steps, "papers": papers_steps}
    tasks = [
        BoundTask(dataset, split, folder, model, depth, protocol, count, level, hold, seed)
        for protocol, count in steps.items()
    ]
    runs = dict(zip(steps, _run_beside_each_other(tasks, threads, report), strict=True))
    title = f"{model} of depth {depth} on {dataset}, split {split}, above {level:g}"
    return {
        title: {
            "figures": [figure._asdict() for figure in _figures(runs)],
            "runs": {protocol: run._asdict() for protocol, run in runs.items()},
        }
    }


def _figures(runs: dict[ProtocolName, BoundRun]) -> list[Figure]:
    figures = []
    for protocol, run in runs.items():
        if run.step is not None and run.seconds is not None:
            figures += [
                Figure(f"{protocol}, steps to the bound", float(run.step), 0.0),
                Figure(f"{protocol}, s of processor to the bound", run.seconds, 0.0),
            ]
        per_step = 1e3 * run.all_seconds / run.last_step
        figures += [
            Figure(f"{protocol}, ms of processor a step, tracing included", per_step, 0.0),
            Figure(f"{protocol}, bound at the end", run.last_bound, 0.0),
        ]
    fast, papers = runs["fast"].seconds, runs["papers"].seconds
    if fast is not None and papers is not None:
        figures.append(Figure("time to the bound, fast / papers", fast / papers, 0.0, _AT_MOST))
    return figures


def _run_beside_each_other(
    tasks: list[BoundTask], threads: int, report: Callable[[str], None]
) -> list[BoundRun]:
    """Take the first run of each process. Whoever is done goes on, so that all have one load."""
    environment = os.environ | thread_environment(threads)
    with contextlib.ExitStack() as stack:
        processes = []
        for task in tasks:
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(
                [sys.executable, "-m", "gpflow_dwp.lab.benchmarks._bound_child", json.dumps(task)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append((process, errors))
            report(f"{task.protocol}: up to {task.num_steps} steps")
        runs = []
        for (process, errors), task in zip(processes, tasks, strict=True):
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                process.wait()
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no error output"])[-1]
                raise RuntimeError(f"The run by protocol {task.protocol} failed: {last}")
            runs.append(BoundRun(*json.loads(line)))
            report(f"{task.protocol}: ended after {runs[-1].last_step} steps")
    return runs
