"""``gpflow-dwp evaluate``: how well a run's model predicts a table with known targets."""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.predict import read_rows
from gpflow_dwp.cli.predictions import predict
from gpflow_dwp.cli.reports import as_json, report_cells
from gpflow_dwp.cli.run_description import RunDescription
from gpflow_dwp.cli.run_directory import MODEL, read_run
from gpflow_dwp.cli.scores import error_name, mean_log_density
from gpflow_dwp.data import Cells, Standardiser
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.models import load_model

__all__ = ["run_evaluate"]

Array = npt.NDArray[np.float64]


def run_evaluate(options: argparse.Namespace) -> None:
    """Print scores of a run's model on a table, in the units of the target.

    :param options: As ``gpflow-dwp evaluate`` parses them.
    :raises UsageError: If the run or the table cannot be used.
    """
    with user_mistakes():
        with read_run(options.run) as folder:
            run, model = RunDescription.read(folder), load_model(folder / MODEL)
        cells, X = read_rows(options.table, run)
        Y = _read_known_target(cells, run)
        data = run.standardise_inputs(X, cells), run.standardise_target(Y, cells)
    report_cells("evaluate", run.encoder, cells)
    target = None if run.target is None else Standardiser.from_dict(run.target)
    draws = {"num_samples": options.num_samples}
    predictions = predict(model, data[0], target, Y=Y, seed=options.seed, **draws)
    scores = {
        "log_likelihood": mean_log_density(model, data, target, seed=options.seed, **draws),
        error_name(run.task): predictions.error(Y),
        **predictions.scores(Y),
        **predictions.calibration(Y),
    }
    if options.json:
        print(as_json({"rows": len(X), **scores}))
        return
    print(f"{run.target_name}: {len(X)} rows")
    for name, value in scores.items():
        shown = f"{value:.4g}" if name in ("rmse", "crps") else f"{value:.4f}"
        print(f"{name.replace('_', ' ')}: {shown}")


def _read_known_target(cells: Cells, run: RunDescription) -> Array:
    """The target in raw units or as class indices, [N, 1]."""
    cells.check_has([run.target_name], "target")
    if run.classes is None:
        return cells.numbers(run.target_name)[:, None]
    cells.check_complete(run.target_name)
    indices = {name: float(index) for index, name in enumerate(run.classes)}
    found = np.empty(len(cells))
    for row, label in enumerate(cells.names(run.target_name, run.classes)):
        if label not in indices:
            raise TableError(
                f"{cells.path}: column {run.target_name!r} holds {label!r} in {cells.place(row)}, "
                f"which training did not see; the classes are {', '.join(run.classes)}"
            )
        found[row] = indices[label]
    return found[:, None]
