"""Timing subjects in turns, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.lab.benchmarks.peers import PEERS, peer_command
from gpflow_dwp.lab.benchmarks.subjects import Subject
from gpflow_dwp.lab.study import thread_environment

__all__ = ["Figure", "Timings", "measure", "ratio", "summary"]

_SECONDS_PER_TURN = 0.4


class Timings(NamedTuple):
    """What was measured of one subject.

    :param seconds: Wall time of a step, one value for each turn.
    :param processor_seconds: Processor time of a step, likewise.
    :param first_step: Wall time of the first step, with tracing and compilation.
    """

    seconds: list[float]
    processor_seconds: list[float]
    first_step: float


class Figure(NamedTuple):
    """One number of a benchmark.

    :param name: What it is.
    :param value: Its median over turns.
    :param spread: Half of the distance between its quartiles over turns.
    :param at_most: What it is meant to be at most; None for no aim.
    """

    name: str
    value: float
    spread: float
    at_most: float | None = None


def measure(
    subjects: Sequence[Subject],
    *,
    turns: int,
    threads: int,
    peer_python: str | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> list[Timings]:
    """Time subjects in turns, so that whatever slows the machine slows them alike.

    :param subjects: What to time; all are in memory at once.
    :param turns: How often each one is timed, for about 0.4 seconds each time.
    :param threads: Threads of each process, of TensorFlow, BLAS and LAPACK.
    :param peer_python: See :func:`~gpflow_dwp.lab.benchmarks.peers.peer_command`.
    :param report: Called with a line of progress.
    :raises RuntimeError: If a process ends by itself.
    """
    environment = os.environ | thread_environment(threads)
    with contextlib.ExitStack() as stack:
        processes = []
        for subject in subjects:
            command = [sys.executable, "-m", "gpflow_dwp.lab.benchmarks._child"]
            if subject.model in PEERS:
                command = peer_command(peer_python)
            process = subprocess.Popen(
                [*command, json.dumps(subject)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            # One at a time: another's start would be part of this one's first step.
            processes.append((process, _answer(process, subject)["first_step"]))
            report(f"prepared {subject}")
        steps = [
            max(1, int(_SECONDS_PER_TURN / _ask(process, subject, 3)["wall"]))
            for (process, _), subject in zip(processes, subjects, strict=True)
        ]
        timings = [Timings([], [], first) for _, first in processes]
        for turn in range(turns):
            for (process, _), subject, count, timing in zip(
                processes, subjects, steps, timings, strict=True
            ):
                answer = _ask(process, subject, count)
                timing.seconds.append(answer["wall"])
                timing.processor_seconds.append(answer["processor"])
            report(f"turn {turn + 1} of {turns}")
    return timings


def ratio(name: str, over: Timings, under: Timings, at_most: float | None = None) -> Figure:
    """The ratio of two subjects' seconds, turn by turn."""
    ratios = np.array(over.seconds) / np.array(under.seconds)
    return summary(name, ratios, at_most)


def summary(
    name: str, values: Sequence[float] | npt.NDArray[np.float64], at_most: float | None = None
) -> Figure:
    """Median and half of the distance between the quartiles."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return Figure(name, float(middle), float(0.5 * (high - low)), at_most)


def _ask(process: subprocess.Popen[str], subject: Subject, num_steps: int) -> dict[str, float]:
    if process.stdin is None:
        raise RuntimeError("a process without a pipe cannot be asked.")
    process.stdin.write(f"{num_steps}\n")
    process.stdin.flush()
    return _answer(process, subject)


def _answer(process: subprocess.Popen[str], subject: Subject) -> dict[str, float]:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError(f"The process that times {subject} ended with code {process.wait()}.")
    return json.loads(line)
