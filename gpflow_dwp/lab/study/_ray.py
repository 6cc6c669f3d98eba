"""Jobs as tasks of Ray."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from typing import Any

from gpflow_dwp.lab.cell_process import run_process
from gpflow_dwp.lab.study._job import Job
from gpflow_dwp.optional import import_optional

__all__ = ["LOCAL", "Ray"]

LOCAL = "local"
"""The address of a Ray that is started here, and ends with this process."""

_SECONDS_TO_CONNECT = 10.0
# More than a process is given to save.
_SECONDS_TO_END = 35.0
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
# A worker that ends would kill its child, which ends by itself and saves first.
_LETS_SAVE = {"RAY_kill_child_processes_on_worker_exit": "false"}


class Ray:
    """A context that runs jobs on Ray, each in a worker process, and cancels them at its end.

    The worker starts the process that would run without Ray, and waits for it. However the worker
    ends, that process sees the end of its standard input, saves its state and ends; one that takes
    its place, perhaps on another machine, waits for that. A worker that dies is replaced.

    A Ray that this process has connected to already is used, whatever the address.

    :param address: Of a cluster, or :data:`LOCAL`.
    :param jobs: How many jobs a local Ray has room for; None for one on each processor.
    :param threads: Of each job, for which it takes as many processors.
    :param gpus: GPUs of each job, such as 0.25.
    :ivar running: The jobs that were started and have not ended.
    :raises ImportError: If Ray is not installed.
    :raises ConnectionError: If nothing answers at the address.
    """

    def __init__(self, address: str, *, jobs: int | None, threads: int, gpus: float) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray = import_optional("ray", "ray")
        self.running: dict[Job, Any] = {}
        self._address, self._jobs = address, jobs
        self._needs = {"CPU": float(threads), "GPU": gpus}
        self._is_ours = False
        _check_answers(address)

    def __enter__(self) -> Ray:
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect()
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(n.get(k, 0.0) >= v for k, v in self._needs.items()) for n in nodes):
            self._disconnect()
            raise ValueError(
                f"threads and gpus must be what a machine of Ray has, got {self._needs['CPU']:g} "
                f"and {self._needs['GPU']:g}; there are {nodes}."
            )
        self._task = self._ray.remote(
            max_calls=1,  # a worker process for each job
            num_cpus=self._needs["CPU"],
            num_gpus=self._needs["GPU"],
            runtime_env={"env_vars": _LETS_SAVE},
        )(run_process)
        return self

    def __exit__(self, *_: object) -> None:
        tasks = list(self.running.values())
        try:
            for forced in (False, True):
                for task in tasks:
                    self._ray.cancel(task, force=forced)
                if tasks:
                    _, tasks = self._ray.wait(
                        tasks, num_returns=len(tasks), timeout=_SECONDS_TO_END
                    )
        finally:
            self._disconnect()

    def start(self, job: Job) -> None:
        """Start a job as soon as there is room for it."""
        if not self._needs["GPU"]:
            job.task["environment"] |= {"CUDA_VISIBLE_DEVICES": "-1"}
        self.running[job] = self._task.remote(job.task)

    def ended(self, seconds: float) -> dict[Job, str]:
        """Wait until a job has ended, but not long; return those that have, and how."""
        tasks = list(self.running.values())
        ready, _ = self._ray.wait(tasks, num_returns=1, timeout=seconds)
        ended = [job for job, task in self.running.items() if task in ready]
        return {job: self._end(self.running.pop(job)) for job in ended}

    def _end(self, task: Any) -> str:
        try:
            return f"the process ended with exit code {self._ray.get(task)}"
        except Exception as error:  # of Ray's many
            text = " ".join(str(error).split())
            return f"Ray gave up, {type(error).__name__}: {text}"

    def _connect(self) -> None:
        options = dict(_QUIET)
        if self._address == LOCAL:
            options |= {"include_dashboard": False, "object_store_memory": 2**27}
            least = self._needs["CPU"] * (self._jobs or 1)
            options["num_cpus"] = max(int(least), 0 if self._jobs else os.cpu_count() or 1)
        is_main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGTERM)
        try:
            self._ray.init(address=self._address, **options)
        except Exception as error:
            raise ConnectionError(
                f"no Ray could be reached at {self._address}: {' '.join(str(error).split())}"
            ) from error
        finally:
            if is_main and handler is not None:
                signal.signal(signal.SIGTERM, handler)  # Ray has one that only exits

    def _disconnect(self) -> None:
        if self._is_ours:
            self._ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself would try for a minute, and tell of it in many lines."""
    found = re.fullmatch(r"(?:\w+://)?\[?([^/]+?)\]?:(\d+)/?", address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), _SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"no Ray could be reached at {address}: {error}") from error
