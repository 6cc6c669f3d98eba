"""How much longer it takes to import this package than GPflow alone."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from gpflow_dwp.benchmarks.measurement import Figure, summary

__all__ = ["benchmark_import"]


def benchmark_import(
    turns: int = 7, *, report: Callable[[str], None] = lambda text: None
) -> list[Figure]:
    """Time imports in fresh interpreters, in turns.

    :param turns: How often each package is imported.
    :param report: Called with a line of progress.
    :return: Seconds of each import, and of the difference, turn by turn.
    :raises ValueError: If ``turns`` is less than 1.
    """
    if turns < 1:
        raise ValueError(f"turns must be at least 1, got {turns}.")
    seconds: dict[str, list[float]] = {"gpflow": [], "gpflow_dwp": []}
    for turn in range(turns):
        for package, times in seconds.items():
            start = time.perf_counter()
            command = [sys.executable, "-c", f"import gpflow, {package}"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        report(f"turn {turn + 1} of {turns}")
    pairs = zip(seconds["gpflow_dwp"], seconds["gpflow"], strict=True)
    return [
        *(summary(f"import {package}, s", times) for package, times in seconds.items()),
        summary("gpflow_dwp over gpflow, s", [ours - theirs for ours, theirs in pairs], 0.3),
    ]
