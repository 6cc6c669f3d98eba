"""Jobs as processes of this one."""

from __future__ import annotations

import signal
import subprocess
import time

from gpflow_dwp.lab.cell_process import end_processes, start_process
from gpflow_dwp.lab.study._job import Job

__all__ = ["Processes"]

_SECONDS_BETWEEN_LOOKS = 0.02


class Processes:
    """A context that runs jobs in processes of their own, and at its end ends those that run.

    :ivar running: The jobs that were started and have not ended.
    """

    def __init__(self) -> None:
        self.running: dict[Job, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        end_processes(self.running.values())

    def start(self, job: Job) -> None:
        """Start a job."""
        self.running[job] = start_process(job.task)

    def ended(self, seconds: float) -> dict[Job, str]:
        """Wait until a job has ended, but not long; return those that have, and how."""
        deadline = time.monotonic() + seconds
        while not (ended := [j for j, p in self.running.items() if p.poll() is not None]):
            if time.monotonic() > deadline:
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return {job: _end(self.running.pop(job)) for job in ended}


def _end(process: subprocess.Popen[bytes]) -> str:
    end_processes([process])
    code = process.returncode
    if code >= 0:
        return f"the process ended with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
    return f"the process was ended by {known.get(-code, f'signal {-code}')}{hint}"
