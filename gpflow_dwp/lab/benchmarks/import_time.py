"""How much longer it takes to import this package than GPflow alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from gpflow_dwp.lab.benchmarks.measurement import Figure, summary

__all__ = ["benchmark_import"]


def benchmark_import(
    turns: int = 7, *, report: Callable[[str], None] = lambda text: None
) -> list[Figure]:
    """Time imports in fresh interpreters, in turns.

    :param turns: How often each package is imported.
    :param report: Called with a line of progress.
    :return: Seconds of each import, and of the difference, turn by turn; also in processor time,
        which does not grow with what else the machine does.
    :raises ValueError: If ``turns`` is less than 1.
    """
    if turns < 1:
        raise ValueError(f"turns must be at least 1, got {turns}.")
    seconds: dict[str, list[tuple[float, float]]] = {"gpflow": [], "gpflow_dwp": []}
    for turn in range(turns):
        for package, times in seconds.items():
            times.append(_time_import(package))
        report(f"turn {turn + 1} of {turns}")
    figures = []
    for index, unit in enumerate(("s", "s of processor")):
        theirs, ours = ([both[index] for both in times] for times in seconds.values())
        over = [ours_once - once for ours_once, once in zip(ours, theirs, strict=True)]
        figures += [
            summary(f"import gpflow, {unit}", theirs),
            summary(f"import gpflow_dwp, {unit}", ours),
            summary(f"gpflow_dwp over gpflow, {unit}", over, 0.3),
        ]
    return figures


def _time_import(package: str) -> tuple[float, float]:
    """Wall time and processor time of a fresh interpreter that imports GPflow and a package."""
    command = [sys.executable, "-c", f"import gpflow, {package}"]
    start, used = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    now = os.times()
    processor = now.children_user + now.children_system - used.children_user - used.children_system
    return time.perf_counter() - start, processor
