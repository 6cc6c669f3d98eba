"""The parent's end of a cell's process."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from gpflow_dwp.evaluation.provenance import describe_provenance
from gpflow_dwp.lab.study.results import Record
from gpflow_dwp.lab.study.runnable import RunnableCell

__all__ = ["Job", "thread_environment", "tidy"]

_THREAD_VARIABLES = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"),
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
_PROGRAM = (sys.executable, "-m", f"{__package__}._child")
_LINES_OF_ERROR = 5
# What TensorFlow says at every start.
_OF_TENSORFLOW = re.compile(r"[IW]\d{4} |WARNING: All log messages before absl::InitializeLog")


def thread_environment(threads: int) -> dict[str, str]:
    """Return environment variables of a quiet process with so many threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads)) | {"TF_CPP_MIN_LOG_LEVEL": "3"}


class Job:
    """A cell that is running.

    :param cell: What to run.
    :param directory: The study's.
    :param threads: Threads of the process.
    :param uci_folder: Where the data are; None for the default.
    :ivar process: Of the cell.
    :ivar step: How far it is.
    :ivar bound: Per datum, at that step.
    """

    def __init__(
        self, cell: RunnableCell, directory: Path, threads: int, uci_folder: Path | None
    ) -> None:
        self.cell = cell
        self.step, self.bound = 0, float("nan")
        self._directory = directory
        checkpoints, self._log = _parts(directory, cell.key)
        curve = directory / "curves" / f"{cell.key}.csv" if cell.num_steps is not None else None
        for path in (self._log, curve, checkpoints):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
        self._provenance = describe_provenance(cell.dtype, threads, cell.packages)
        self._start = time.monotonic()
        self._metrics: dict[str, float] | None = None
        self._error: str | None = None
        self._unread = b""
        places = {"checkpoints": checkpoints, "curve": curve, "uci_folder": uci_folder}
        texts = {name: None if path is None else str(path) for name, path in places.items()}
        job = {"runs": cell.runs, "cell": cell.to_dict(), **texts}
        environment = os.environ | thread_environment(threads) | {"TF_CPP_MIN_LOG_LEVEL": "2"}
        with self._log.open("wb") as log:
            # A group of its own: Ctrl-C reaches the study, which then ends its cells.
            self.process = subprocess.Popen(
                [*_PROGRAM, json.dumps(job)],
                stdin=subprocess.PIPE,  # ends with this process, however that ends
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def fileno(self) -> int:
        """Return what to wait on until there is something to read."""
        return self.process.stdout.fileno()  # type: ignore[union-attr]

    def read(self) -> bool:
        """Take in what the process has sent; return whether it has ended."""
        data = os.read(self.fileno(), 2**16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for message in map(json.loads, lines):
            if "step" in message:
                self.step, self.bound = message["step"], message["bound"]
            self._metrics = message.get("metrics", self._metrics)
            self._error = message.get("error", self._error)
        if not data:
            self.process.wait()
        return not data

    def record(self) -> Record:
        """Return what became of the cell, once its process has ended."""
        error = self._error
        if self._metrics is None and error is None:
            error = f"ProcessDied: {self._describe_exit()}{self._end_of_log()}"
        # Of a cell that was resumed, only the training of earlier processes is known.
        training = (self._metrics or {}).get("training_seconds", 0.0)
        seconds = max(time.monotonic() - self._start, training)
        return Record(
            key=self.cell.key,
            cell=self.cell.to_dict(),
            status="finished" if error is None else "failed",
            error=error,
            metrics=self._metrics if error is None else None,
            provenance={**self._provenance, "seconds": seconds},
        )

    def tidy(self) -> None:
        """Remove what is of no use once the record is kept.

        A process that was killed leaves its checkpoint: a retry goes on from there.
        """
        if self._metrics is not None or self._error is not None:
            tidy(self._directory, self.cell.key, log=self._metrics is not None)

    def wait(self, seconds: float) -> bool:
        """Wait for the process; return whether it has ended."""
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Stop listening."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _describe_exit(self) -> str:
        code = self.process.returncode
        if code >= 0:
            return f"the process ended with exit code {code}"
        known = {number.value: number.name for number in signal.Signals}
        hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return f"the process was ended by {known.get(-code, f'signal {-code}')}{hint}"

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        end = [line for line in lines if line.strip() and not _OF_TENSORFLOW.match(line)]
        end = end[-_LINES_OF_ERROR:]
        return "; its last words: " + " | ".join(end) if end else ""


def tidy(directory: Path, key: str, *, log: bool = True) -> None:
    """Remove what a cell needs no more, once its result is kept.

    :param directory: The study's.
    :param key: Of the cell.
    :param log: Whether to remove what it printed, too.
    """
    checkpoints, printed = _parts(directory, key)
    if log:
        printed.unlink(missing_ok=True)
    shutil.rmtree(checkpoints, ignore_errors=True)


def _parts(directory: Path, key: str) -> tuple[Path, Path]:
    """A cell's checkpoints, and what it prints."""
    return directory / "checkpoints" / key, directory / "logs" / f"{key}.log"
