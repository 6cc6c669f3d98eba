"""``gpflow-dwp predict``: a table in, the table with predictions out."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import FileOptions, Json, NumSamples, Run, Seed
from gpflow_dwp.files import replacing
from gpflow_dwp.optional import find_optional

if TYPE_CHECKING:
    from gpflow_dwp.cli.trained_run import TrainedRun
    from gpflow_dwp.data.reading import Format, TableFile

__all__ = ["predict"]

_FOUND_OUT = FileOptions()
_PERCENT = "95"


def predict(
    run: Run,
    table: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    file: FileOptions = _FOUND_OUT,
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    overwrite: bool = False,  # which the gate of outputs asks for
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
    from gpflow_dwp.cli.reports import as_json, encoding_notes
    from gpflow_dwp.cli.trained_run import TrainedRun

    with user_mistakes():
        if out is not None:
            _check_packages(out)
        elif json:
            raise UsageError("--json tells of the file that is written: give --out")
        trained = TrainedRun.read(run)
        rows, X = trained.read_rows(table, file)
        added = _names(trained)
        known = [*rows.original, *rows.original.index.names]
        clash = sorted({*added} & {str(name) for name in known})
        if clash:
            raise UsageError(f"{table} has a column {clash[0]!r} already")
        if out is not None and _is_parquet(out) and len({*rows.frame}) < rows.frame.shape[1]:
            raise UsageError(f"{table} has two columns of one name, which {out} cannot have")
        units = trained.load(run)
    encoder = trained.encoder
    for note in [*rows.notes, *encoding_notes(encoder, rows.frame)]:
        print(f"gpflow-dwp predict: {note}", file=sys.stderr)
    from gpflow_dwp import evaluation

    predictions = evaluation.predict(units, X, num_samples=num_samples, seed=seed)
    columns = dict(zip(added, _columns(predictions, trained), strict=True))
    with user_mistakes():
        _write(out, _with_columns(_typed(rows, trained, out), columns), rows.format)
    if json:
        unseen, filled = encoder.unseen(rows.frame), encoder.count_filled(rows.frame)
        print(as_json({"out": str(out), "rows": len(X), "unseen": unseen, "filled": filled}))
    elif out is not None:
        print(f"{len(X)} predictions are in {out}")


def _check_packages(out: Path) -> None:
    """Refuse a file that could not be written in the end."""
    if _is_parquet(out):
        find_optional("pyarrow", "cli")
    if out.suffix.lower() == ".zst" and find_spec("zstandard") is None:
        raise UsageError(
            f"{out} needs zstandard, which is not installed: python -m pip install zstandard"
        )


def _names(run: TrainedRun) -> list[str]:
    """Names of the columns that are added to the user's table."""
    if run.classes is None:
        parts = ["mean", "sd", f"lower_{_PERCENT}", f"upper_{_PERCENT}"]
    else:
        parts = ["predicted", *(f"probability_{label}" for label in run.classes)]
    return [f"{run.target_name}_{part}" for part in parts]


def _columns(predictions: Any, run: TrainedRun) -> list[Any]:
    """What these columns hold."""
    if run.classes is None:
        return [predictions.mean, predictions.deviation, predictions.lower, predictions.upper]
    labels = [run.classes[label] for label in predictions.labels]
    return [labels, *predictions.probabilities.T]


def _typed(rows: TableFile, run: TrainedRun, out: Path | None) -> Any:
    """The rows as their file has them, or with numbers where only text is known of columns."""
    if out is None or not _is_parquet(out) or not rows.is_text:
        return rows.original
    from pandas import to_numeric

    numeric = [name for name in run.encoder.columns if name not in run.encoder.categories]
    return _with_columns(rows.original, {name: to_numeric(rows.frame[name]) for name in numeric})


def _with_columns(frame: Any, columns: dict[str, Any]) -> Any:
    frame = frame.copy()
    for name, values in columns.items():
        frame[name] = values
    return frame


def _write(out: Path | None, frame: Any, form: Format) -> None:
    """Write a file as a whole or not at all; with the table's index, if it has a name."""
    index = any(name is not None for name in frame.index.names)
    separator = form.separator or ","
    written = {"sep": "," if separator == " " else separator, "decimal": form.decimal or "."}
    if out is None:
        frame.to_csv(sys.stdout, index=index, **written)
        return
    with replacing(out) as partial:
        if _is_parquet(out):
            frame.to_parquet(partial, index=index)
        else:
            packing: Any = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}.get(
                out.suffix.lower()
            )
            if out.suffix.lower() == ".zip":
                packing = {"method": "zip", "archive_name": out.stem}
            frame.to_csv(partial, index=index, encoding="utf-8", compression=packing, **written)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")
