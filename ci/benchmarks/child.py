"""Do one thing whenever asked over a pipe, and tell how long it took.

It imports nothing of the package: what it does may be the step of another library, in an
environment in which the package is not.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(run: Callable[[int], Any]) -> None:
    """Answer each line, how often to run, with wall and processor seconds of one time.

    :param run: Does its thing a number of times, and returns a plain value when it is done.
    """
    for line in sys.stdin:
        times = int(line)
        wall, processor = time.perf_counter(), time.process_time()
        value = run(times)
        processor = (time.process_time() - processor) / times
        wall = (time.perf_counter() - wall) / times
        print(json.dumps({"value": value, "wall": wall, "processor": processor}), flush=True)


if __name__ == "__main__":
    file, function, paths, arguments = json.loads(sys.argv[1])
    sys.path[:0] = paths
    serve(runpy.run_path(file)[function](*arguments))
