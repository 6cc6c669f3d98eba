"""What a running study shows: a bar for cells, one for each running cell, a line for each ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tqdm.auto import tqdm

from gpflow_dwp.lab.study._job import Job
from gpflow_dwp.lab.study.provenance import count_of_other_code
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

    :param num_cells: How many cells there are.
    :param kept: Results of those that need not be run.
    :param shown: Whether anything is shown.
    """

    def __init__(self, num_cells: int, kept: Sequence[Record], *, shown: bool) -> None:
        self._shown = shown
        # tqdm takes None for: unless this is no terminal.
        self._disable = None if shown else True
        self._bars: dict[str, tqdm] = {}
        self._kept, self._done, self._num_cells = kept, len(kept), num_cells
        self._cells = tqdm(
            total=num_cells, initial=len(kept), unit="cell", desc="cells", disable=self._disable
        )

    def __enter__(self) -> StudyProgress:
        if self._shown and self._kept:
            line = f"{len(self._kept)} of {self._num_cells} cells are there already"
            others = count_of_other_code(record.provenance for record in self._kept)
            if others:
                line += f", {others} by another version of the code, whose defaults may differ"
            self._write(line)
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (*self._bars.values(), self._cells):
            bar.close()

    def show(self, jobs: Sequence[Job]) -> None:
        """Show where the running cells stand."""
        for job in jobs:
            bar = self._bars.get(job.cell.key)
            if bar is None:
                bar = self._bars[job.cell.key] = tqdm(
                    total=job.cell.num_steps,
                    unit="step",
                    desc=job.cell.title,
                    leave=False,
                    disable=self._disable,
                )
            if job.step > bar.n:
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
        title = f"[{self._done}/{self._num_cells}] {job.cell.title}"
        if record.metrics is None:
            self._write(f"{title}: failed: {record.error}")
            return
        scores = ", ".join(
            f"{name} {record.metrics[metric]:.3f}"
            for metric, name in _TOLD.items()
            if metric in record.metrics
        )
        self._write(f"{title}: {scores}, {record.provenance['seconds']:.0f} s")

    def _write(self, line: str) -> None:
        if self._shown:
            tqdm.write(line, file=sys.stderr)
