"""What is known of a cell while it runs, in files that it and the study share."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from gpflow_dwp.evaluation.provenance import describe_provenance
from gpflow_dwp.lab.study.results import Record
from gpflow_dwp.lab.study.runnable import RunnableCell

__all__ = ["Job", "thread_environment", "tidy"]

_THREAD_VARIABLES = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"),
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
# Else the first cell on a GPU takes all of its memory. Warnings go to the log.
_OF_CELLS = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}
_PROGRAM = (sys.executable, "-m", f"{__package__}._child")
_LINES_OF_ERROR = 5
# What TensorFlow says at every start.
_OF_TENSORFLOW = re.compile(r"[IW]\d{4} |WARNING: All log messages before absl::InitializeLog")


def thread_environment(threads: int) -> dict[str, str]:
    """Return environment variables of a quiet process with so many threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads)) | {"TF_CPP_MIN_LOG_LEVEL": "3"}


class Job:
    """A cell that runs, or waits for Ray to have room.

    :param uci_folder: Where the data are; None for the default.
    :ivar task: What :func:`~gpflow_dwp.lab.cell_process.start_process` takes.
    :ivar step: How far it is; None before it has started.
    :ivar bound: Per datum, at that step.
    """

    def __init__(
        self, cell: RunnableCell, directory: Path, threads: int, uci_folder: Path | None
    ) -> None:
        self.cell = cell
        self.step: int | None = None
        self.bound = float("nan")
        self._directory, self._threads = directory, threads
        files = cell.files(directory)
        checkpoints, self._log, self._messages = _parts(directory, cell.key)
        for path in (checkpoints, self._log, *files.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._messages.unlink(missing_ok=True)  # of an earlier process
        self._start = time.monotonic()
        self._metrics: dict[str, float] | None = None
        self._error: str | None = None
        self._provenance: dict[str, Any] | None = None
        self._read = 0
        places = {"checkpoint_directory": checkpoints, "uci_folder": uci_folder, **files}
        job = {
            "runs": cell.runs,
            "cell": cell.to_dict(),
            "arguments": {name: path and str(path) for name, path in places.items()},
            "provenance": [cell.dtype, threads, cell.packages],
            "log": str(self._log),
        }
        self.task: dict[str, Any] = {
            "command": [*_PROGRAM, json.dumps(job)],
            "environment": thread_environment(threads) | _OF_CELLS,
            "log": str(self._log),
            "messages": str(self._messages),
        }

    def read(self) -> None:
        """Take in what the process has said."""
        if not self._messages.exists():
            return
        with self._messages.open("rb") as file:  # opened anew: other machines see then what is new
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        for message in map(json.loads, whole.splitlines()):
            if message.get("step") == 0:
                self._start = time.monotonic()
            self.step, self.bound = message.get("step", self.step), message.get("bound", self.bound)
            self._metrics = message.get("metrics", self._metrics)
            self._error = message.get("error", self._error)
            if "provenance" in message:  # what an earlier process says is over
                self._provenance, self._metrics, self._error = message["provenance"], None, None

    def record(self, how: str) -> Record:
        """Return what became of the cell, once its process has ended.

        :param how: How it ended, for a process that did not say.
        """
        self.read()
        error = self._error
        if self._metrics is None and error is None:
            error = f"ProcessDied: {how}{self._end_of_log()}"
        # Of a cell that was resumed, only the training of earlier processes is known.
        training = (self._metrics or {}).get("training_seconds", 0.0)
        seconds = max(time.monotonic() - self._start, training)
        cell = self.cell
        where = self._provenance or describe_provenance(cell.dtype, self._threads, cell.packages)
        return Record(
            key=cell.key,
            cell=cell.to_dict(),
            status="finished" if error is None else "failed",
            error=error,
            metrics=self._metrics if error is None else None,
            provenance={**where, "seconds": seconds},
        )

    def tidy(self) -> None:
        """Remove what is of no use once the record is kept.

        A process that was killed leaves its checkpoint: a retry goes on from there.
        """
        if self._metrics is not None or self._error is not None:
            tidy(self._directory, self.cell.key, log=self._metrics is not None)
        self._messages.unlink(missing_ok=True)

    def _end_of_log(self) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        end = [ln for ln in text.split("\n") if ln.strip() and not _OF_TENSORFLOW.match(ln)]
        end = end[-_LINES_OF_ERROR:]
        return "; its last words: " + " | ".join(end) if end else ""


def tidy(directory: Path, key: str, *, log: bool = True) -> None:
    """Remove what a cell needs no more, once its result is kept.

    :param log: Whether to remove what it printed, too.
    """
    checkpoints, printed, messages = _parts(directory, key)
    messages.unlink(missing_ok=True)
    if log:
        printed.unlink(missing_ok=True)
    shutil.rmtree(checkpoints, ignore_errors=True)


def _parts(directory: Path, key: str) -> tuple[Path, Path, Path]:
    """A cell's checkpoints, what it prints, and what it says."""
    logs = directory / "logs"
    return directory / "checkpoints" / key, logs / f"{key}.log", logs / f"{key}.jsonl"
