"""``gpflow-dwp evaluate``: how well a run's model predicts a table with known targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import Json, NumSamples, Run, Seed
from gpflow_dwp.exceptions import TableError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpflow_dwp.cli.run_description import RunDescription
    from gpflow_dwp.data import Cells

__all__ = ["evaluate"]


def evaluate(
    run: Run, table: Path, /, *, num_samples: NumSamples = 100, seed: Seed = 0, json: Json = False
) -> None:
    """Score the model of a run directory on a table with known targets.

    The scores are the mean log predictive density, the root mean squared error or share of wrong
    labels, and how honest the uncertainty is.

    example:

        gpflow-dwp evaluate runs/houses-1 sold-later.csv --json

    :param table: CSV or Parquet file with the columns of training and the target.
    :param seed: For the draws.
    """
    from gpflow_dwp.cli.predict import read_rows
    from gpflow_dwp.cli.predictions import predict
    from gpflow_dwp.cli.reports import as_json, report_cells
    from gpflow_dwp.cli.run_description import read_model
    from gpflow_dwp.cli.scores import error_name, mean_log_density
    from gpflow_dwp.data import Standardiser

    with user_mistakes():
        trained, model = read_model(run)
        cells, X = read_rows(table, trained)
        Y = _read_known_target(cells, trained)
        data = trained.standardise_inputs(X, cells), trained.standardise_target(Y, cells)
    report_cells("evaluate", trained.encoder, cells)
    target = None if trained.target is None else Standardiser.from_dict(trained.target)
    predictions = predict(model, data[0], target, Y=Y, num_samples=num_samples, seed=seed)
    density = mean_log_density(model, data, target, num_samples=num_samples, seed=seed)
    scores = {
        "log_likelihood": density,
        error_name(trained.task): predictions.error(Y),
        **predictions.scores(Y),
        **predictions.calibration(Y),
    }
    if json:
        print(as_json({"rows": len(X), **scores}))
        return
    print(f"{trained.target_name}: {len(X)} rows")
    for name, value in scores.items():
        shown = f"{value:.4g}" if name in ("rmse", "crps") else f"{value:.4f}"
        print(f"{name.replace('_', ' ')}: {shown}")


def _read_known_target(cells: Cells, run: RunDescription) -> npt.NDArray[np.float64]:
    """The target in raw units or as class indices, [N, 1]."""
    import numpy as np

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
