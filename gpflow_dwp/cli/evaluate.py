"""``gpflow-dwp evaluate``: how well a run's model predicts a table with known targets."""

from __future__ import annotations

import sys
from pathlib import Path

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import FileOptions, Json, NumSamples, Run, Seed

__all__ = ["evaluate"]


_FOUND_OUT = FileOptions()


def evaluate(
    run: Run,
    table: Path,
    /,
    *,
    file: FileOptions = _FOUND_OUT,
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Score the model of a run directory on a table with known targets.

    The scores are the mean log predictive density, the root mean squared error or share of wrong
    labels, and how honest the uncertainty is.

    example:

        gpflow-dwp evaluate runs/houses-1 sold-later.csv --json

    :param table: CSV, Parquet or Feather file with the columns of training and the target.
    :param seed: Seed of the draws.
    """
    from gpflow_dwp.cli.reports import as_json, encoding_notes, named_scores
    from gpflow_dwp.cli.trained_run import TrainedRun

    with user_mistakes():
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        Y = trained.read_target(rows)
        units = trained.load(run)
    for note in [*rows.notes, *encoding_notes(trained.encoder, rows.frame)]:
        print(f"gpflow-dwp evaluate: {note}", file=sys.stderr)
    from gpflow_dwp import evaluation

    judged = evaluation.judge(units, X, Y, num_samples=num_samples, seed=seed)
    scores = named_scores(judged.scores, trained.task) | judged.calibration
    del scores["elbo"], scores["seconds"]  # of training
    if json:
        print(as_json({"rows": len(X), **scores}))
        return
    print(f"{trained.target_name}: {len(X)} rows")
    for name, value in scores.items():
        shown = f"{value:.4g}" if name in ("rmse", "crps") else f"{value:.4f}"
        print(f"{name.replace('_', ' ')}: {shown}")
