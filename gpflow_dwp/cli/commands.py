"""What is done with a run: ``gpflow-dwp`` predict, evaluate, export and info."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.options import FileOptions, Json, NumSamples, RunDirectory
from gpflow_dwp.cli.reports import (
    as_json,
    named_scores,
    prediction_names,
    predictions_by_name,
    scores_as_text,
)
from gpflow_dwp.cli.runs import FIGURES, METRICS, OPTIONS, Run, TrainedRun, check_outside
from gpflow_dwp.data.reading import UNKNOWN, TableFile
from gpflow_dwp.files import check_can_be_made, replacing
from gpflow_dwp.optional import list_versions

__all__ = ["evaluate", "export", "info", "predict"]

_NO_CSV = (".parquet", ".pq", ".feather", ".arrow", ".gz", ".bz2", ".xz", ".zip", ".zst")
_METRICS = ("training_rows", "test_rows", "steps", "stop_reason", "reason", "shares", "scores")


def predict(
    run: RunDirectory,
    table: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    file: FileOptions = UNKNOWN,
    num_samples: NumSamples = 100,
) -> None:
    """Add predictions to a table, with the model of a run directory.

    They are the mean and 95% interval of each row, or the probability of each class.

    examples:

        gpflow-dwp predict runs/houses-1 new-houses.csv
        gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv

    :param table: CSV, Parquet or Feather file with the columns of training.
    :param out: CSV file to write: the table with columns added (default: standard output).
    """
    with user_mistakes():
        if out is not None:
            _check_new(out)
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        names = prediction_names(trained.target_name, trained.classes)
        for name in rows.original:
            if name in names:
                raise UsageError(f"{table} has a column {name!r} already")
        units = trained.load(run)
    _tell("predict", trained, rows)
    from gpflow_dwp.evaluation import predictions

    found = predictions.predict(units, X, num_samples=num_samples)
    columns = predictions_by_name(found, trained.target_name, trained.classes)
    frame = rows.original.assign(**columns)
    separator = "," if rows.format.separator in (None, " ") else rows.format.separator
    written = {"index": False, "sep": separator, "decimal": rows.format.decimal or "."}
    if out is None:
        frame.to_csv(sys.stdout, **written)
        return
    with user_mistakes(), replacing(out) as partial:
        frame.to_csv(partial, encoding="utf-8", **written)
    print(f"{len(X)} predictions are in {out}")


def evaluate(
    run: RunDirectory,
    table: Path,
    /,
    *,
    file: FileOptions = UNKNOWN,
    num_samples: NumSamples = 100,
    json: Json = False,
) -> None:
    """Score the model of a run directory on a table with known targets.

    The scores are the mean log predictive density, the root mean squared error or share of wrong
    labels, and how honest the uncertainty is.

    example:

        gpflow-dwp evaluate runs/houses-1 sold-later.csv --json

    :param table: CSV, Parquet or Feather file with the columns of training and the target.
    """
    from gpflow_dwp.data.table import read_target

    with user_mistakes():
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        Y = read_target(rows, trained.target_name, trained.classes)
        units = trained.load(run)
    _tell("evaluate", trained, rows)
    from gpflow_dwp.evaluation import predictions

    judged = predictions.judge(units, X, Y, num_samples=num_samples)
    scores = named_scores(judged.scores, trained.task) | judged.calibration
    del scores["elbo"], scores["seconds"]  # of training
    if json:
        print(as_json({"rows": len(X), **scores}))
        return
    print(f"{trained.target_name}: {len(X)} rows")
    for name, value in scores.items():
        print(f"{name.replace('_', ' ')}: {value:{'.4g' if name in ('rmse', 'crps') else '.4f'}}")


def export(
    run: RunDirectory,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    num_samples: NumSamples = 100,
) -> None:
    """Write the model of a run directory for TensorFlow alone.

    The SavedModel runs where only TensorFlow is installed. It takes and gives the units of the
    table; its signatures are predict_y, predict_f, sample and log_density, and
    assets.extra/columns.json names the columns. Where a caller names no number of samples, it draws
    as many as this option says.

    example:

        gpflow-dwp export runs/houses-1 -o houses-model

    :param out: Directory to write, which is new.
    """
    with user_mistakes():
        place = out.resolve()
        check_outside(out, [place, *place.parents])
        place.parent.mkdir(parents=True, exist_ok=True)
        check_can_be_made(place)
        trained = TrainedRun.read(run)
        units = trained.load(run)
        from gpflow_dwp.serving import export_model

        columns = {
            "X": trained.encoder.feature_names,
            "Y": [trained.target_name],
            "classes": trained.classes,
            "encoder": asdict(trained.encoder),
        }
        export_model(
            units.model,
            out,
            input_standardiser=trained.inputs,
            output_standardiser=trained.target,
            num_samples=num_samples,
            assets={"columns.json": json_module.dumps(columns, indent=1)},
        )
    print(f"The model is in {out}: tf.saved_model.load({str(out)!r})")


def info(run: Path | None = None, /, *, json: Json = False) -> None:
    """Say what a run directory is, and which versions are installed.

    Of a run it tells columns, scores, the models that were tried, layers and versions.

    examples:

        gpflow-dwp info runs/houses-1

    :param run: A directory that fit wrote (default: versions only).
    """
    with user_mistakes():
        found: dict[str, Any] = (
            {"versions": list_versions()} if run is None else _describe(Run(run))
        )
    if json:
        print(as_json(found))
        return
    scores = found.get("run", {}).pop("scores", {})
    for title, section in found.items():
        print(f"{title}:" if isinstance(section, dict) else section)
        for name, value in section.items() if isinstance(section, dict) else ():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            print(f"  {name.replace('_', ' ')}: {shown}")
    if scores:
        print(scores_as_text(scores))


def _describe(run: Run) -> dict[str, Any]:
    if not run.directory.exists() and (run.work / OPTIONS).is_file():
        steps = "some steps are kept" if run.has_steps else "no steps are kept"
        return {"run": {"unfinished": f"fit --resume {run.directory} goes on; {steps}"}}
    trained = TrainedRun.read(run.directory)
    metrics = json_module.loads((run.directory / METRICS).read_bytes())
    missing = [name for name in FIGURES if not (run.directory / name).is_file()]
    described = {
        "target": trained.target_name,
        "task": trained.task,
        **({} if trained.classes is None else {"classes": list(trained.classes)}),
        "columns": list(trained.encoder.columns),
        **{name: metrics[name] for name in _METRICS if metrics.get(name) is not None},
        **({"missing": missing} if missing else {}),
    }
    tried = {"tried": metrics["tried"]} if "tried" in metrics else {}
    return {"run": described, **tried, "model": trained.model, "versions": trained.versions}


def _tell(command: str, trained: TrainedRun, rows: TableFile) -> None:
    """Say what was found out of a table."""
    for note in [*rows.notes, *trained.encoder.notes(rows.frame)]:
        print(f"gpflow-dwp {command}: {note}", file=sys.stderr)


def _check_new(out: Path) -> None:
    """Refuse a file that must not or cannot be written, before anything is computed."""
    parent = out.resolve().parent
    check_outside(out, [parent, *parent.parents])
    if out.exists():
        raise UsageError(f"--out {out} is there already: choose another, or remove it")
    if out.suffix.lower() in _NO_CSV:
        raise UsageError(f"--out {out}: predictions are written as CSV")
    if not parent.is_dir():
        raise UsageError(f"--out {out}: {parent} is not a directory")
    check_can_be_made(out)
