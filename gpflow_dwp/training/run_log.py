"""The course of a run in a file, a row for each call of the callbacks."""

from __future__ import annotations

import abc
import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from gpflow_dwp.files import write_whole
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.training.callbacks import RunCallback, TrainingProgress

__all__ = ["CSVLog", "JSONLinesLog", "RunLog"]

_COLUMNS = ("step", "seconds", "elbo", "elbo_per_datum")


class RunLog(RunCallback):
    """What :class:`CSVLog` and :class:`JSONLinesLog` share.

    A row holds the step, the seconds so far, the bound since the last row in nats, that bound per
    datum, and what ``metrics`` return. Every row is in the file as soon as the step is done.

    A run that begins at step 0 starts the file anew, in place of another run's log. A run that
    goes on from a checkpoint goes on in the same file: rows of steps after the checkpoint are taken
    out first, so that no step is there twice.

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
        lines = _lines(self._path) if self._path.exists() else []
        try:
            # The end of a line that was being written when the process died is missing.
            lines = self._until([line for line in lines if line.endswith("\n")], step)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._path} is not the log of a run like this one; it stays as it is "
                f"({error or type(error).__name__})."
            ) from error
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, "".join(lines))

    def __call__(self, progress: TrainingProgress) -> None:
        """Write a row."""
        row: dict[str, int | float] = {
            "step": progress.step,
            "seconds": round(progress.seconds, 3),
            "elbo": progress.elbo,
            "elbo_per_datum": progress.elbo / float(progress.model.num_data),
        }
        row.update({name: float(metric(progress)) for name, metric in self._metrics.items()})
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(self._format(row))

    def finish(self, model: VariationalModel) -> None:
        """Do nothing: every row is written."""

    @abc.abstractmethod
    def _until(self, lines: list[str], step: int) -> list[str]:
        """What a log begins with, of which these lines are there; an error if they are no log."""

    @abc.abstractmethod
    def _format(self, row: Mapping[str, int | float]) -> str:
        """A row as a line."""


class CSVLog(RunLog):
    """A run's course as a CSV file with a header: see :class:`RunLog`, also for parameters.

    ``CSVLog("log.csv", {"noise": lambda progress: progress.model.likelihood.variance})``
    """

    def _until(self, lines: list[str], step: int) -> list[str]:
        for header in map(tuple, csv.reader(lines[:1])):
            if header[: len(_COLUMNS)] != _COLUMNS or (step and header != self.columns):
                raise ValueError(f"its columns are {', '.join(header)}")
        rows = [line for line in lines[1:] if step and int(line.split(",")[0]) <= step]
        return [_csv_line(self.columns), *rows]

    def _format(self, row: Mapping[str, int | float]) -> str:
        return _csv_line(row.values())


class JSONLinesLog(RunLog):
    """A run's course as a file with one JSON object a line: see :class:`RunLog`.

    What is not finite is null.
    """

    def _until(self, lines: list[str], step: int) -> list[str]:
        return [line for line in lines if json.loads(line)["step"] <= step]

    def _format(self, row: Mapping[str, int | float]) -> str:
        finite = {name: value if math.isfinite(value) else None for name, value in row.items()}
        return json.dumps(finite) + "\n"


def _csv_line(values: object) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)  # type: ignore[arg-type]
    return buffer.getvalue()


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return file.readlines()
