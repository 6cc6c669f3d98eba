"""Processes of cells as their parents see them; who only waits for one imports nothing heavy."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpflow_dwp.lab.study._job import Job

__all__ = ["Processes", "end_processes", "run_process", "start_process"]

_SECONDS_BETWEEN_LOOKS = 0.02
_SECONDS_TO_SAVE = 20.0


def start_process(task: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """Start the process of a cell, which saves its state and ends when this process does.

    :param task: ``command``, a program and its arguments; ``environment``, variables by name; and
        ``log`` and ``messages``, files for what the process prints and for what it has to say, to
        which is added here that it has started.
    """
    with Path(task["messages"]).open("ab") as messages, Path(task["log"]).open("wb") as log:
        messages.write(b'{"step": 0}\n')
        messages.flush()
        return subprocess.Popen(
            task["command"],
            stdin=subprocess.PIPE,  # ends with this process, however that ends
            stdout=messages,
            stderr=log,
            env=os.environ | task["environment"],
            start_new_session=True,  # Ctrl-C reaches the study, which then ends its cells
        )


def end_processes(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End processes: let them save first, then insist."""
    everyone = waiting = list(processes)
    for number, seconds in ((signal.SIGINT, _SECONDS_TO_SAVE), (signal.SIGKILL, 10.0)):
        for process in waiting:
            process.send_signal(number)
        deadline = time.monotonic() + seconds
        waiting = [process for process in waiting if not _ends(process, deadline)]
    for process in everyone:
        if process.stdin is not None:
            process.stdin.close()  # not before: who reads its end interrupts itself, too


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
        return {job: _tell_end(self.running.pop(job)) for job in ended}


def _tell_end(process: subprocess.Popen[bytes]) -> str:
    end_processes([process])
    code = process.returncode
    if code >= 0:
        return f"the process ended with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
    return f"the process was ended by {known.get(-code, f'signal {-code}')}{hint}"


def run_process(task: Mapping[str, Any]) -> int:
    """Run the process of a cell, and die if it was killed, so that Ray tries again.

    :param task: See :func:`start_process`.
    :return: The exit code.
    """
    # Ray's workers block what they and their processes are cancelled by.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    process = start_process(task)
    try:
        while process.poll() is None:  # Ray's interruption is a flag that no waiting call sees
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        end_processes([process])
    if process.returncode < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return process.returncode


def _ends(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True
