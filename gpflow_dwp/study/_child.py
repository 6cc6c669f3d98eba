"""The process of one cell: ``python -m gpflow_dwp.study._child JOB``.

JOB is a JSON object. The process writes JSON objects to its standard output, one a line: steps as
they are taken, and at the end metrics or an error. Everything else goes to its standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from typing import Any

_SECONDS_BETWEEN_REPORTS = 0.5


def main(job: dict[str, Any]) -> int:
    """Run a cell.

    :param job: cell, checkpoints (directory), curve (file) and uci_folder (or None).
    :return: 0, 1 where the cell failed, 130 where it was interrupted.
    """
    # A process that was started in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not come between the lines

    def send(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")

    last = 0.0

    def report(step: int, bound: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            try:
                send(step=step, bound=bound)
            except BrokenPipeError:
                # Nobody listens: the study was killed. Training saves its state and ends.
                signal.raise_signal(signal.SIGINT)

    try:
        from gpflow_dwp.study import Cell, run_cell

        metrics = run_cell(
            Cell.from_dict(job["cell"]),
            checkpoint_directory=job["checkpoints"],
            curve=job["curve"],
            uci_folder=job["uci_folder"],
            report=report,
        )
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        traceback.print_exc()
        send(error=f"{type(error).__name__}: {error}")
        return 1
    send(metrics=metrics)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
