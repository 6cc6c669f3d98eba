"""What a running study shows: a bar for cells, one for each running cell, a line for each ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tqdm.auto import tqdm

from gpflow_dwp.evaluation.provenance import count_of_other_code
from gpflow_dwp.lab.study._job import Job
from gpflow_dwp.lab.study.results import Record

__all__ = ["StudyProgress"]

# What is told of a cell as it ends, by the names of metrics.
_TOLD = {
    "elbo": "ELBO",
    "test_log_likelihood": "test log-likelihood",
    "nlpd": "NLPD",
    "nll": "NLL",
    "error": "error",
    "rmse": "RMSE",
}


class StudyProgress:
    """A context that shows bars on a terminal; elsewhere, such as in a file, lines only.

    :param kept: Results of those that need not be run.
    """

    def __init__(self, num_cells: int, kept: Sequence[Record], *, shown: bool) -> None:
        self._shown, self._num_cells = shown, num_cells
        # tqdm takes None for: unless this is no terminal.
        self._options: dict[str, Any] = {"disable": None if shown else True}
        self._bars: dict[str, tqdm] = {}
        self._done = len(kept)
        self._cells = tqdm(
            total=num_cells, initial=len(kept), unit="cell", desc="cells", **self._options
        )
        if kept and shown:
            others = count_of_other_code(record.provenance for record in kept)
            told = f", {others} by another version of the code, whose defaults may differ"
            there = f"{len(kept)} of {num_cells} cells are there already"
            self._write(there + (told if others else ""))

    def __enter__(self) -> StudyProgress:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (*self._bars.values(), self._cells):
            bar.close()

    def show(self, jobs: Sequence[Job]) -> None:
        """Show where the running cells stand."""
        for job in jobs:
            if job.cell.key not in self._bars:
                about = {"total": job.cell.num_steps, "desc": job.cell.title}
                bar = tqdm(unit="step", leave=False, **about, **self._options)
                self._bars[job.cell.key] = bar
            bar = self._bars[job.cell.key]
            if job.step is not None and job.step > bar.n:
                bar.set_postfix_str(f"bound per datum {job.bound:.3f}", refresh=False)
                bar.update(job.step - bar.n)
            bar.refresh()
        self._cells.refresh()

    def cell_ended(self, job: Job, record: Record) -> None:
        """Show what became of a cell."""
        if record.key in self._bars:
            self._bars.pop(record.key).close()
        self._done += 1
        self._cells.update()
        metrics = record.metrics or {}
        scores = [
            f"{name} {metrics[metric]:.3f}" for metric, name in _TOLD.items() if metric in metrics
        ]
        told = f"{', '.join(scores)}, {record.provenance['seconds']:.0f} s"
        ended = told if record.metrics is not None else f"failed: {record.error}"
        self._write(f"[{self._done}/{self._num_cells}] {job.cell.title}: {ended}")

    def _write(self, line: str) -> None:
        if self._shown:
            tqdm.write(line, file=sys.stderr)
