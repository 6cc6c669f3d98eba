"""What is done with a run: ``gpflow-dwp`` predict, evaluate, export and info."""

from __future__ import annotations

import contextlib
import json as json_module
import platform
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.options import FileOptions, Json, NumSamples, RunDirectory, Seed
from gpflow_dwp.cli.runs import (
    CONFIGURATION,
    DESCRIPTION,
    METRICS,
    MODEL,
    Run,
    TrainedRun,
    check_outside,
    check_place,
)
from gpflow_dwp.data.reading import UNKNOWN, Format
from gpflow_dwp.files import read_sealed, replacing
from gpflow_dwp.optional import find_optional

if TYPE_CHECKING:
    from gpflow_dwp.data.reading import TableFile

__all__ = ["evaluate", "export", "info", "predict"]

_PARQUET = (".parquet", ".pq")
_PACKAGES = (
    *("gpflow-dwp", "gpflow", "tensorflow", "tensorflow-probability", "tf_keras"),
    *("numpy", "scipy", "pandas", "scikit-learn"),
)
_METRICS = (
    *("training_rows", "validation_rows", "test_rows", "steps", "best_step", "stop_reason"),
    "reason",
)


def predict(
    run: RunDirectory,
    table: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    file: FileOptions = UNKNOWN,
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    overwrite: bool = False,
    json: Json = False,
) -> None:
    """Add predictions to a table, with the model of a run directory.

    They are the mean and 95% interval of each row, or the probability of each class.

    examples:

        gpflow-dwp predict runs/houses-1 new-houses.csv
        gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv

    :param table: CSV, Parquet or Feather file with the columns of training.
    :param out: File to write: the table with columns added, Parquet if it ends in .parquet or .pq,
        else CSV (default: standard output, as CSV).
    :param overwrite: Replace --out if it exists.
    :param seed: Seed of the draws.
    """
    from gpflow_dwp.cli.reports import as_json

    with user_mistakes():
        if out is not None:
            check_place(out, table, overwrite=overwrite)
            _check_packages(out)
        elif json:
            raise UsageError("--json tells of the file that is written: give --out")
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        parts: tuple[str, ...] = ("mean", "sd", "lower_95", "upper_95")
        if trained.classes is not None:
            parts = ("predicted", *(f"probability_{label}" for label in trained.classes))
        names = [f"{trained.target_name}_{part}" for part in parts]
        for name in (*rows.original, *rows.original.index.names):
            if name in names:
                raise UsageError(f"{table} has a column {name!r} already")
        if _is_parquet(out) and len({*rows.frame}) < rows.frame.shape[1]:
            raise UsageError(f"{table} has two columns of one name, which {out} cannot have")
        units = trained.load(run)
    _tell("predict", trained, rows)
    from gpflow_dwp import evaluation

    found: Any = evaluation.predict(units, X, num_samples=num_samples, seed=seed)
    if trained.classes is not None:
        labels = [trained.classes[label] for label in found.labels]
        values = [labels, *found.probabilities.T]
    else:
        values = [found.mean, found.deviation, found.lower, found.upper]
    frame = _typed(rows, trained) if _is_parquet(out) else rows.original
    with user_mistakes():
        _write(out, frame.assign(**dict(zip(names, values, strict=True))), rows.format)
    if json:
        encoder, frame = trained.encoder, rows.frame
        noted = {"unseen": encoder.unseen(frame), "filled": encoder.count_filled(frame)}
        print(as_json({"out": str(out), "rows": len(X), **noted}))
    elif out is not None:
        print(f"{len(X)} predictions are in {out}")


def evaluate(
    run: RunDirectory,
    table: Path,
    /,
    *,
    file: FileOptions = UNKNOWN,
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
    from gpflow_dwp.cli.reports import as_json, named_scores
    from gpflow_dwp.data.tables import read_target

    with user_mistakes():
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        Y = read_target(rows, trained.target_name, trained.classes)
        units = trained.load(run)
    _tell("evaluate", trained, rows)
    from gpflow_dwp import evaluation

    judged = evaluation.judge(units, X, Y, num_samples=num_samples, seed=seed)
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
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write the model of a run directory for TensorFlow alone.

    The SavedModel runs where only TensorFlow is installed. It takes and gives the units of the
    table; its signatures are predict_y, predict_f, sample and log_density, and
    assets.extra/columns.json names the columns. Where a caller names no number of samples and no
    seed, it draws as these options say.

    example:

        gpflow-dwp export runs/houses-1 -o houses-model

    :param out: Directory to write; must not hold anything.
    :param seed: Seed of the draws.
    """

    with user_mistakes():
        check_outside(out, [out.resolve(), *out.resolve().parents])
        trained = TrainedRun.read(run)
        units = trained.load(run)
        from gpflow_dwp.serving import export_model

        columns = {
            "X": trained.encoder.feature_names,
            "Y": [trained.target_name],
            "classes": trained.classes,
            "encoder": trained.encoder.to_dict(),
        }
        export_model(
            units.model,
            out,
            input_standardiser=trained.inputs,
            output_standardiser=trained.target,
            num_samples=num_samples,
            seed=seed,
            assets={"columns.json": json_module.dumps(columns, indent=1)},
        )
    if json:
        print(json_module.dumps({"out": str(out), **columns}))
    else:
        print(f"The model is in {out}: tf.saved_model.load({str(out)!r})")


def info(run: Path | None = None, /, *, json: Json = False) -> None:
    """Say what a run directory is, and which versions are installed.

    Of a run it tells columns, scores, layers and versions.

    examples:

        gpflow-dwp info runs/houses-1
        gpflow-dwp info --json

    :param run: A directory that fit wrote (default: versions only).
    """
    from gpflow_dwp.cli.reports import as_json, scores_as_text

    with user_mistakes():
        found = {"versions": _versions()} if run is None else _describe(Run(run))
    if json:
        print(as_json(found))
        return
    scores = found.get("run", {}).pop("scores", {})
    for title, section in found.items():
        print(f"{title}:")
        for name, value in section.items():
            print(f"  {_in_words(name, value)}")
    if scores:
        print(scores_as_text(scores))


def _versions() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _describe(run: Run) -> dict[str, dict[str, Any]]:

    folder = run.folder
    if not (folder / DESCRIPTION).is_file() and (run.work / CONFIGURATION).is_file():
        return {"run": {"unfinished": True, "has_steps": run.has_steps}}
    trained, metrics = TrainedRun.read(run.directory), read_sealed(folder / METRICS)
    if not (folder / MODEL).is_dir():
        raise UsageError(f"{run.directory} is damaged: its model is missing")
    described = {
        "target": trained.target_name,
        "task": trained.task,
        **({} if trained.classes is None else {"classes": list(trained.classes)}),
        "columns": list(trained.encoder.columns),
        **{name: metrics[name] for name in _METRICS if metrics.get(name) is not None},
        "scores": metrics["scores"],
    }
    return {"run": described, "model": trained.model, "versions": trained.versions}


def _in_words(name: str, value: Any) -> str:
    """A line about a field."""
    if name == "unfinished":
        return "training was cut off, and can go on by fit --resume"
    if name == "has_steps":
        return f"{'some' if value else 'no'} steps are kept"
    if name == "collapsed_layers" and not value:
        return "every layer has learned from the data"
    title = {
        "nats": "learned from the data, by layer (nats)",
        "collapsed_layers": "layers that learned nothing",
    }.get(name, name.replace("_", " "))
    return f"{title}: {', '.join(map(str, value)) if isinstance(value, list) else value}"


def _tell(command: str, trained: TrainedRun, rows: TableFile) -> None:
    """Say what was found out of a table."""
    from gpflow_dwp.cli.reports import encoding_notes

    for note in [*rows.notes, *encoding_notes(trained.encoder, rows.frame)]:
        print(f"gpflow-dwp {command}: {note}", file=sys.stderr)


def _check_packages(out: Path) -> None:
    """Refuse a file that could not be written in the end."""
    if _is_parquet(out):
        find_optional("pyarrow", "cli")
    if out.suffix.lower() == ".zst" and find_spec("zstandard") is None:
        raise UsageError(
            f"{out} needs zstandard, which is not installed: python -m pip install zstandard"
        )


def _typed(rows: TableFile, run: TrainedRun) -> Any:
    """The rows as their file has them, with numbers where a CSV file has their text."""
    if rows.format.separator is None:
        return rows.original
    from pandas import to_numeric

    frame, encoder = rows.original.copy(), run.encoder
    for name in encoder.columns:
        if name not in encoder.categories and name not in encoder.origins:
            frame[name] = to_numeric(rows.frame[name])
    return frame


def _write(out: Path | None, frame: Any, form: Format) -> None:
    """Write a file as a whole or not at all; with the table's index, if it has a name."""
    index = any(name is not None for name in frame.index.names)
    separator = "," if form.separator in (None, " ") else form.separator
    written = {"index": index, "sep": separator, "decimal": form.decimal or "."}
    if out is None:
        frame.to_csv(sys.stdout, **written)
        return
    with replacing(out) as partial:
        if _is_parquet(out):
            frame.to_parquet(partial, index=index)
            return
        suffix = out.suffix.lower()
        packing: Any = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}.get(suffix)
        if suffix == ".zip":
            packing = {"method": "zip", "archive_name": out.stem}
        frame.to_csv(partial, encoding="utf-8", compression=packing, **written)


def _is_parquet(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() in _PARQUET
