"""The process of one cell: ``python -m gpflow_dwp.lab.study._child JOB``.

JOB is a JSON object. The process writes JSON objects to its standard output, one a line: steps as
they are taken, and at the end metrics or an error. Everything else goes to its standard error. When
its standard input ends, the study is no more: the process saves its state, and ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

_SECONDS_BETWEEN_REPORTS = 0.5
_SECONDS_TO_SAVE = 20.0
_INTERRUPTED = 130


def main(job: dict[str, Any]) -> int:
    """Run a cell.

    :param job: runs (module and function), cell, arguments (of the function), provenance (arguments
        of what describes it) and log (a file, held while the cell runs).
    :return: 0, 1 where the cell failed, 130 where it was interrupted.
    """
    # A process that was started in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_the_study, daemon=True).start()
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not come between the lines

    def send(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")

    last = 0.0

    def report(step: int, bound: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            with contextlib.suppress(BrokenPipeError):  # this process is about to end, too
                send(step=step, bound=bound)

    try:
        from gpflow_dwp.evaluation.provenance import describe_provenance
        from gpflow_dwp.files import held

        # The process of a study or of a worker that was killed may still save its state.
        with held(Path(job["log"]), wait=True):
            send(provenance=describe_provenance(*job["provenance"]))
            module, _, function = job["runs"].partition(":")
            run = getattr(importlib.import_module(module), function)
            metrics = run(job["cell"], **job["arguments"], report=report)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        send(error=f"{type(error).__name__}: {error}")
        return 1
    send(metrics=metrics)
    return 0


def _end_with_the_study() -> None:
    """Wait for the end of standard input; let training save, then insist."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_SECONDS_TO_SAVE)
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
