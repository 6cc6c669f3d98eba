"""The program of a process that does one thing whenever its parent asks, over a pipe.

It imports nothing of this package by itself: what it does may be to import the package, or the step
of another library in an environment in which this package is not.
"""

from __future__ import annotations

import ctypes
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def serve(run: Callable[[int], Any]) -> None:
    """Answer each line, how often to run and whether to read memory, with seconds, once for each.

    :param run: Does its thing a number of times, and returns plain values when it is done.
    """
    for line in sys.stdin:
        times, reads_memory = json.loads(line)
        before = _settle_memory() if reads_memory else 0
        wall, processor = time.perf_counter(), time.process_time()
        value = run(times)
        answer = {
            "value": value,
            "wall": (time.perf_counter() - wall) / times,
            "processor": (time.process_time() - processor) / times,
            "peak": _resident("VmHWM") - before if reads_memory else None,
        }
        print(json.dumps(answer), flush=True)


def _settle_memory() -> int:
    """Resident bytes; those of the peak fall to as many."""
    # Freed memory that the C library still holds would be taken again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    return before


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])
    raise OSError(f"/proc/self/status has no {field}.")


if __name__ == "__main__":
    file, function, arguments = json.loads(sys.argv[1])
    serve(runpy.run_path(file)[function](*arguments))
