"""A process that times one subject, whenever its parent asks over a pipe."""

from __future__ import annotations

import json
import sys
import time

from gpflow_dwp.benchmarks.shapes import Shape
from gpflow_dwp.benchmarks.subjects import Subject, prepare


def main() -> None:
    """Answer each line, a number of steps, with a line of JSON: seconds of wall and processor."""
    model, shape, dtype, floor = json.loads(sys.argv[1])
    start = time.perf_counter()
    run = prepare(Subject(model, Shape(*shape), dtype, floor))
    prepared = time.perf_counter()
    run(1)
    first = time.perf_counter() - prepared
    run(2)
    print(json.dumps({"prepare": prepared - start, "first_step": first}), flush=True)
    for line in sys.stdin:
        num_steps = int(line)
        wall, processor = time.perf_counter(), time.process_time()
        run(num_steps)
        times = {
            "wall": (time.perf_counter() - wall) / num_steps,
            "processor": (time.process_time() - processor) / num_steps,
        }
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
