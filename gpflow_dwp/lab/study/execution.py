"""One cell, from the data to its scores, in this process."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

from gpflow_dwp.data import load_uci
from gpflow_dwp.files import replacing
from gpflow_dwp.lab.study.cell import Cell
from gpflow_dwp.lab.study.scoring import prediction_scores, whole_data_bound
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.training import TrainingHistory, TrainingProgress, fit

__all__ = ["Report", "Watch", "run_cell"]

_POINTS_OF_CURVE = 200
_STEPS_BETWEEN_REPORTS = 20

Report = Callable[[int, float], None]
"""What is told of progress: the number of steps, and the bound per row."""


def run_cell(
    cell: Cell | Mapping[str, Any],
    *,
    checkpoint_directory: str | Path | None = None,
    curve: str | Path | None = None,
    uci_folder: str | Path | None = None,
    report: Report | None = None,
) -> dict[str, float]:
    """Train the model of a cell, and judge it.

    It sets GPflow's default float to the cell's, and TensorFlow's global seed.

    :param cell: What to run; also as :meth:`Cell.to_dict` gives it.
    :param checkpoint_directory: Where training leaves its state, and goes on from the state that
        an earlier run left; None for neither.
    :param curve: CSV file to write: the bound per training row, in about 200 means over steps.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :param report: Called from time to time with the number of steps and the bound per row.
    :return: The metrics of a :class:`Record`.
    :raises KeyboardInterrupt: If Ctrl-C ended training; its state is kept then.
    """
    cell = cell if isinstance(cell, Cell) else Cell.from_dict(cell)
    gpflow.config.set_default_float(np.dtype(cell.dtype).type)
    split = load_uci(cell.dataset, cell.split, folder=uci_folder)
    model = cell.build(split.train, target_scale=float(split.targets.scale[0]))
    watch = Watch(report)
    history = fit(
        model,
        split.train,
        cell.num_steps,
        batch_size=cell.batch_size or len(split.train[0]),
        protocol=cell.training_protocol,
        kl_annealing_steps=cell.kl_annealing_steps,
        estimator=Estimator(cell.num_importance_samples),
        seed=cell.seed,
        callbacks=[watch],
        callback_interval=max(1, min(_STEPS_BETWEEN_REPORTS, cell.num_steps // 4)),
        progress=False,
        checkpoint_directory=checkpoint_directory,
    )
    if history.num_steps < cell.num_steps:
        raise KeyboardInterrupt(history.stop_reason)
    if curve is not None:
        _write_curve(Path(curve), history)
    elbo, elbo_error = whole_data_bound(
        model,
        split.train,
        estimator=Estimator(cell.num_importance_samples),
        seed=cell.seed,
    )
    seconds = watch.seconds_per_step(history)
    steps_of_epoch = 1 if cell.batch_size is None else history.num_data / cell.batch_size
    return {
        "elbo": elbo,
        "elbo_standard_error": elbo_error,
        **prediction_scores(
            model,
            split.test[0],
            split.Y_test,
            split.targets,
            num_samples=cell.num_prediction_samples,
            marginals=cell.estimates_densities,
            seed=cell.seed,
        ),
        "seconds_per_step": seconds,
        "seconds_per_epoch": seconds * steps_of_epoch,
        "training_seconds": history.seconds,
    }


class Watch:
    """A callback that reports progress and takes the time of steps.

    :param report: Called with the number of steps and the bound per row; None for nothing.
    :param before: Steps of earlier runs, which the number includes.
    """

    def __init__(self, report: Report | None, before: int = 0) -> None:
        self._report, self._before = report, before
        self._times: list[tuple[int, float]] = []

    def __call__(self, progress: TrainingProgress) -> None:
        self._times.append((progress.step, time.perf_counter()))
        if self._report is not None:
            self._report(self._before + progress.step, progress.elbo / progress.model.num_data)

    def seconds_per_step(self, history: TrainingHistory) -> float:
        """Median over the intervals between calls: without tracing, or a pause of the machine."""
        steps, times = np.array(self._times).reshape(-1, 2).T
        if len(steps) < 2:
            return history.seconds / history.num_steps
        return float(np.median(np.diff(times) / np.diff(steps)))


def _write_curve(path: Path, history: TrainingHistory) -> None:
    """Write the last step of each block of steps and the mean over the block."""
    ends = np.unique(np.linspace(0, history.num_steps, _POINTS_OF_CURVE + 1).astype(int))
    with replacing(path) as partial, partial.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "elbo_per_datum"])
        for start, end in zip(ends[:-1], ends[1:], strict=True):
            writer.writerow([end, float(history.elbo_per_datum[start:end].mean())])
