"""A process that times one subject, whenever its parent asks over a pipe."""

from __future__ import annotations

import json
import sys

from gpflow_dwp.lab.benchmarks._peer_child import serve
from gpflow_dwp.lab.benchmarks.shapes import Shape
from gpflow_dwp.lab.benchmarks.subjects import Subject, prepare


def main() -> None:
    """Serve the subject that the first argument describes, in JSON."""
    model, shape, dtype, floor, task = json.loads(sys.argv[1])
    serve(lambda: prepare(Subject(model, Shape(*shape), dtype, floor, task)))


if __name__ == "__main__":
    main()
