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
from typing import Any, ClassVar, Protocol

from gpflow_dwp.lab.study.provenance import describe_provenance
from gpflow_dwp.lab.study.results import Record

__all__ = ["Job", "RunnableCell", "thread_environment", "tidy_finished"]

_THREAD_VARIABLES = (
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_PROGRAM = (sys.executable, "-m", f"{__package__}._child")
_LINES_OF_ERROR = 5
# What TensorFlow says at every start.
_OF_TENSORFLOW = re.compile(r"[IW]\d{4} |WARNING: All log messages before absl::InitializeLog")


def thread_environment(threads: int) -> dict[str, str]:
    """Return environment variables of a quiet process with so many threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads)) | {"TF_CPP_MIN_LOG_LEVEL": "3"}


class RunnableCell(Protocol):
    """What can be run in a process of its own.

    :cvar runs: Module and function, ``"module:function"``, that take what :meth:`to_dict` gives and
        the other arguments of :func:`~gpflow_dwp.lab.study.run_cell`, and return the metrics.
    :cvar place: The fields of :meth:`to_dict` that tell cells of this kind from others.
    :cvar packages: Distributions whose versions a result should tell, besides those of all.
    """

    runs: ClassVar[str]
    place: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]]

    @property
    def key(self) -> str:
        """What tells this cell from every other one; the name of files."""

    @property
    def title(self) -> str:
        """The cell in a few words."""

    @property
    def dtype(self) -> str:
        """Precision of the computation."""

    @property
    def num_steps(self) -> int | None:
        """How many steps it reports, of which it leaves a curve; None for neither."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""


class Job:
    """A cell that is running.

    :param cell: What to run.
    :param directory: The study's.
    :param threads: Threads of the process.
    :param uci_folder: Where the data are; None for the default.
    """

    def __init__(
        self, cell: RunnableCell, directory: Path, threads: int, uci_folder: Path | None
    ) -> None:
        self.cell = cell
        self.step, self.bound = 0, float("nan")
        self._directory = directory
        self._checkpoints, self._log = _parts(directory, cell.key)
        curve = directory / "curves" / f"{cell.key}.csv" if cell.num_steps is not None else None
        for path in (self._log, curve, self._checkpoints):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
        self._provenance = describe_provenance(cell.dtype, threads, cell.packages)
        self._start = time.monotonic()
        self._metrics: dict[str, float] | None = None
        self._error: str | None = None
        self._unread = b""
        job = {
            "runs": cell.runs,
            "cell": cell.to_dict(),
            "checkpoints": str(self._checkpoints),
            "curve": None if curve is None else str(curve),
            "uci_folder": None if uci_folder is None else str(uci_folder),
        }
        environment = os.environ | thread_environment(threads) | {"TF_CPP_MIN_LOG_LEVEL": "2"}
        with self._log.open("wb") as log:
            # A group of its own: Ctrl-C reaches the study, which then ends its cells.
            self._process = subprocess.Popen(
                [*_PROGRAM, json.dumps(job)],
                stdin=subprocess.PIPE,  # ends with this process, however that ends
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def fileno(self) -> int:
        """Return what to wait on until there is something to read."""
        return self._pipe.fileno()

    def read(self) -> bool:
        """Take in what the process has sent; return whether it has ended."""
        data = os.read(self.fileno(), 2**16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line))
        if not data:
            self._process.wait()
        return not data

    def record(self) -> Record:
        """Return what became of the cell, once its process has ended."""
        code = self._process.returncode
        error = self._error
        if self._metrics is None and error is None:
            error = f"ProcessDied: {_describe_exit(code)}{self._end_of_log()}"
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
        if self._metrics is not None:
            tidy_finished(self._directory, self.cell.key)
        elif self._error is not None:
            shutil.rmtree(self._checkpoints, ignore_errors=True)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it is still there."""
        self._process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Wait for the process; return whether it has ended."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Stop listening."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def _pipe(self) -> Any:
        return self._process.stdout

    def _receive(self, message: dict[str, Any]) -> None:
        if "step" in message:
            self.step, self.bound = message["step"], message["bound"]
        self._metrics = message.get("metrics", self._metrics)
        self._error = message.get("error", self._error)

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        end = [line for line in lines if line.strip() and not _OF_TENSORFLOW.match(line)]
        end = end[-_LINES_OF_ERROR:]
        return "; its last words: " + " | ".join(end) if end else ""


def tidy_finished(directory: Path, key: str) -> None:
    """Remove what a cell needs no more, once its result is kept.

    :param directory: The study's.
    :param key: Of the cell.
    """
    checkpoints, log = _parts(directory, key)
    log.unlink(missing_ok=True)
    shutil.rmtree(checkpoints, ignore_errors=True)


def _parts(directory: Path, key: str) -> tuple[Path, Path]:
    """A cell's checkpoints, and what it prints."""
    return directory / "checkpoints" / key, directory / "logs" / f"{key}.log"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"the process ended with exit code {code}"
    number = -code
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = ", perhaps for want of memory" if number == signal.SIGKILL else ""
    return f"the process was ended by {name}{hint}"
