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
from typing import Any, NamedTuple

import numpy as np

_SECONDS_PER_TURN = 0.4


class Subject(NamedTuple):
    """One thing that a process does over and over.

    :param prepare: A function at the top of a file, which the process runs; what it returns does
        the thing a number of times.
    :param arguments: Of ``prepare``: plain values.
    :param python: Interpreter of another environment, which sees nothing of this one's packages.
    """

    title: str
    prepare: Callable[..., Callable[[int], Any]]
    arguments: Sequence[Any]
    python: str | None = None


class Figure(NamedTuple):
    """One number of a benchmark: median over turns, and half of the distance of the quartiles.

    :param at_most: What it is meant to be at most.
    """

    name: str
    value: float
    spread: float = 0.0
    at_most: float | None = None


class Timings(NamedTuple):
    """Seconds of doing it once, a value for each turn; and of the first time, with compilation."""

    seconds: list[float]
    processor_seconds: list[float]
    first_step: float


class Process(NamedTuple):
    """A process that does what its subject is when it is asked."""

    subject: Subject
    popen: subprocess.Popen[str]
    errors: Any

    def send(self, times: int = 1) -> None:
        """Ask for it a number of times."""
        with contextlib.suppress(BrokenPipeError):  # the answer is what says so
            print(times, file=self.popen.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Wait for "wall" and "processor" seconds of doing it once, and the "value" of it.

        :raises RuntimeError: If the process ends by itself.
        """
        if line := self.popen.stdout.readline():  # type: ignore[union-attr]
            return json.loads(line)
        self.errors.seek(0)
        last = (self.errors.read().strip().splitlines() or ["no error output"])[-1]
        code = self.popen.wait()
        raise RuntimeError(f"what measures {self.subject.title} ended with code {code}: {last}")

    def ask(self, times: int = 1) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self.send(times)
        return self.receive()


@contextlib.contextmanager
def start(subject: Subject, threads: int = 1) -> Iterator[Process]:
    """Start the process of a subject, and end it in the end."""
    python = [sys.executable] if subject.python is None else [subject.python, "-I"]
    file = Path(subject.prepare.__code__.co_filename)
    paths = [] if subject.python else [str(file.parents[1]), *sys.path]
    names = ("OMP", "OPENBLAS", "MKL")
    variables = {f"{name}_NUM_THREADS": str(threads) for name in names}
    variables |= {f"TF_NUM_{kind}OP_THREADS": str(threads) for kind in ("INTRA", "INTER")}
    with tempfile.TemporaryFile("w+") as errors:
        what = json.dumps([str(file), subject.prepare.__name__, paths, subject.arguments])
        popen = subprocess.Popen(
            [*python, str(Path(__file__).with_name("child.py")), what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | variables | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            text=True,
        )
        try:
            yield Process(subject, popen, errors)
        finally:
            popen.kill()
            popen.communicate()


def measure(subjects: Sequence[Subject], turns: int, threads: int) -> dict[str, Timings]:
    """Time subjects by turns, so that whatever slows the machine slows them alike.

    :param subjects: What to time, about 0.4 seconds each turn; all are in memory at once.
    :return: By title.
    """
    with contextlib.ExitStack() as stack:
        processes, timings = [], {}
        for subject in subjects:
            processes.append(stack.enter_context(start(subject, threads)))
            # One at a time: another's start would be part of this one's first step.
            timings[subject.title] = Timings([], [], processes[-1].ask()["wall"])
            processes[-1].ask(2)
            print(f"prepared {subject.title}", file=sys.stderr)
        steps = [max(1, int(_SECONDS_PER_TURN / process.ask(3)["wall"])) for process in processes]
        for _ in range(turns):
            for process, times in zip(processes, steps, strict=True):
                answer = process.ask(times)
                timings[process.subject.title].seconds.append(answer["wall"])
                timings[process.subject.title].processor_seconds.append(answer["processor"])
    return timings


def ratio(
    name: str, over: Sequence[float], under: Sequence[float], at_most: float | None = None
) -> Figure:
    """The ratio of what was measured of two subjects, turn by turn."""
    return summary(name, np.divide(over, under), at_most)


def summary(name: str, values: Any, at_most: float | None = None) -> Figure:
    """Median and half of the distance between the quartiles."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return Figure(name, float(middle), float(0.5 * (high - low)), at_most)
