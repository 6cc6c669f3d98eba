"""The history of a run in a file, a row for each call of the callbacks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from gpflow_dwp.files import write_whole
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.callbacks import RunCallback, TrainingProgress

__all__ = ["CSVLog"]

_COLUMNS = ("step", "seconds", "elbo", "elbo_per_datum")


class CSVLog(RunCallback):
    """A callback that writes a run's history to a CSV file with a header.

    A row holds the step, the seconds so far, the bound since the last row in nats, that bound per
    datum, and what ``metrics`` return. Every row is in the file as soon as the step is done.

    A run that begins at step 0 starts the file anew, in place of another run's log. A run that
    goes on from a checkpoint goes on in the same file: rows of steps after the checkpoint are taken
    out first, so that no step is there twice.

    ``CSVLog("log.csv", {"noise": lambda progress: progress.model.likelihood.variance})``

    :param path: The file; made, with the folders above it, when the run begins.
    :param metrics: Further columns by name, as functions of the progress.
    :raises ValueError: If a metric has the name of another column. When a run begins: if the file
        is there and is not such a log, or, in a run that goes on, has other columns.
    """

    only_in_first_worker: ClassVar[bool] = True

    def __init__(
        self,
        path: str | Path,
        metrics: Mapping[str, Callable[[TrainingProgress], float]] | None = None,
    ) -> None:
        self._path = Path(path)
        self._metrics = dict(metrics or {})
        for name in self._metrics:
            if name in _COLUMNS:
                raise ValueError(f"metrics must not be called {name!r}: there is such a column.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what a row holds."""
        return (*_COLUMNS, *self._metrics)

    def begin(self, step: int, model: VariationalModel) -> None:
        """Start the file, or take out what came after the checkpoint."""
        lines = [",".join(self.columns) + "\n"]
        if self._path.exists():
            with self._path.open(encoding="utf-8", newline="") as file:
                header, *rows = *file, ""
            columns = tuple(header.rstrip("\n").split(","))
            if columns[: len(_COLUMNS)] != _COLUMNS or (step and columns != self.columns):
                raise ValueError(f"{self._path} is not the log of a run like this one: it stays.")
            # The end of a line that was being written when the process died is missing.
            whole = [row for row in rows if row.endswith("\n")]
            lines += [row for row in whole if int(row.split(",")[0]) <= step]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, "".join(lines))

    def __call__(self, progress: TrainingProgress) -> None:
        """Write a row."""
        per_datum = progress.elbo / float(progress.model.num_data)
        row = [progress.step, round(progress.seconds, 3), progress.elbo, per_datum]
        row += [float(metric(progress)) for metric in self._metrics.values()]
        with self._path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)

    def finish(self, model: VariationalModel) -> None:
        """Do nothing: every row is written."""
