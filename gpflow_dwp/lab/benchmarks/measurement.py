"""Measuring subjects, each in a process of its own, by turns."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Figure",
    "Measured",
    "Process",
    "Report",
    "Subject",
    "Timings",
    "measure",
    "ratio",
    "start",
    "summary",
]

Report = Callable[[str], None]
"""What takes a line of progress."""

_PROGRAM = Path(__file__).with_name("_child.py").read_text(encoding="utf-8")
_SECONDS_PER_TURN = 0.4


class Subject(NamedTuple):
    """One thing that a process does over and over.

    :param prepare: A function at the top of a file, which the process runs; what it returns does
        the thing a number of times and returns when it is done.
    :param arguments: Of ``prepare``: plain values, for JSON.
    :param python: Interpreter of another environment, which sees nothing of this package; None for
        this one.
    """

    title: str
    prepare: Callable[..., Callable[[int], Any]]
    arguments: Sequence[Any]
    python: str | None = None


class Figure(NamedTuple):
    """One number of a benchmark.

    :param value: Its median over turns; or the number, where there are no turns.
    :param spread: Half of the distance between its quartiles over turns, or its standard error; 0
        for none that was measured.
    :param at_most: What it is meant to be at most; None for no aim.
    """

    name: str
    value: float
    spread: float = 0.0
    at_most: float | None = None


class Measured(NamedTuple):
    """What a benchmark found of one thing.

    :param figures: What is shown.
    :param values: What figures are made of, by name: plain values and named tuples.
    """

    figures: list[Figure]
    values: dict[str, Any]


class Timings(NamedTuple):
    """What was measured of one subject.

    :param seconds: Wall time of doing it once, one value for each turn.
    :param processor_seconds: Processor time, likewise, which grows less with what else runs.
    :param first_step: Wall time of the first time, with tracing and compilation.
    """

    seconds: list[float]
    processor_seconds: list[float]
    first_step: float


class Process(NamedTuple):
    """A process that does what its subject is when it is asked."""

    subject: Subject
    popen: subprocess.Popen[str]
    errors: Any

    def send(self, times: int = 1, *, memory: bool = False) -> None:
        """Ask for it a number of times, and for the peak of memory meanwhile."""
        with contextlib.suppress(BrokenPipeError):  # the answer is what says so
            print(json.dumps([times, memory]), file=self.popen.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Wait for an answer: "wall" and "processor" seconds of doing it once, the "value" that was
        returned, and the "peak" of memory in bytes beyond those before.

        :raises RuntimeError: If the process ends by itself.
        """
        line = self.popen.stdout.readline()  # type: ignore[union-attr]
        if line:
            return json.loads(line)
        code = self.popen.wait()
        self.errors.seek(0)
        last = (self.errors.read().strip().splitlines() or ["no error output"])[-1]
        raise RuntimeError(
            f"The process that measures {self.subject.title} ended with code {code}: {last}"
        )

    def ask(self, times: int = 1, *, memory: bool = False) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self.send(times, memory=memory)
        return self.receive()


@contextlib.contextmanager
def start(subject: Subject, threads: int = 1, **variables: str) -> Iterator[Process]:
    """Start the process of a subject, and end it in the end.

    :param threads: Of TensorFlow, BLAS and LAPACK.
    :param variables: Further variables of its environment.
    """
    from gpflow_dwp.lab.study._job import thread_environment

    # Isolated: neither this package's folder nor PYTHONPATH are where modules are looked for.
    python = [sys.executable] if subject.python is None else [subject.python, "-I"]
    prepare = subject.prepare.__code__.co_filename, subject.prepare.__name__
    with tempfile.TemporaryFile("w+") as errors:
        popen = subprocess.Popen(
            [*python, "-c", _PROGRAM, json.dumps([*prepare, subject.arguments])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | thread_environment(threads) | variables,
            text=True,
        )
        try:
            yield Process(subject, popen, errors)
        finally:
            popen.kill()
            popen.communicate()


def measure(
    subjects: Sequence[Subject], *, turns: int, threads: int, report: Report
) -> dict[str, Timings]:
    """Time subjects by turns, so that whatever slows the machine slows them alike.

    :param subjects: What to time; all are in memory at once.
    :param turns: How often each one is timed, for about 0.4 seconds each time.
    :return: For each subject, by its title.
    :raises RuntimeError: If a process ends by itself.
    """
    with contextlib.ExitStack() as stack:
        processes, timings = [], {}
        for subject in subjects:
            processes.append(stack.enter_context(start(subject, threads)))
            # One at a time: another's start would be part of this one's first step.
            timings[subject.title] = Timings([], [], processes[-1].ask()["wall"])
            processes[-1].ask(2)
            report(f"prepared {subject.title}")
        steps = [max(1, int(_SECONDS_PER_TURN / process.ask(3)["wall"])) for process in processes]
        for turn in range(turns):
            for process, times in zip(processes, steps, strict=True):
                answer = process.ask(times)
                timings[process.subject.title].seconds.append(answer["wall"])
                timings[process.subject.title].processor_seconds.append(answer["processor"])
            report(f"turn {turn + 1} of {turns}")
    return timings


def ratio(
    name: str, over: Sequence[float], under: Sequence[float], at_most: float | None = None
) -> Figure:
    """The ratio of what was measured of two subjects, turn by turn."""
    return summary(name, [a / b for a, b in zip(over, under, strict=True)], at_most)


def summary(
    name: str,
    values: Sequence[float] | npt.NDArray[Any],
    at_most: float | None = None,
    *,
    unit: float = 1.0,
) -> Figure:
    """Median and half of the distance between the quartiles.

    :param unit: What the values are told in.
    """
    import numpy as np

    low, middle, high = np.percentile(np.asarray(values) / unit, [25, 50, 75])
    return Figure(name, float(middle), float(0.5 * (high - low)), at_most)
