"""A process that reads its own peak memory around a step of one subject."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path

from gpflow_dwp.lab.benchmarks.shapes import Shape
from gpflow_dwp.lab.benchmarks.subjects import Subject, prepare


def main() -> None:
    """Write a line: bytes of a step's peak above what was there before."""
    model, shape, *others = json.loads(sys.argv[1])
    run = prepare(Subject(model, Shape(*shape), *others))
    run(3)  # with tracing and compilation, which are not to be measured
    print(_peak_of_step(run))


def _peak_of_step(run: Callable[[int], object]) -> int:
    # Freed memory that the C library still holds would be taken again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark falls to the present size
    run(1)
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])
    raise OSError(f"/proc/self/status has no {field}.")


if __name__ == "__main__":
    main()
