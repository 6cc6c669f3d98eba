"""``gpflow-dwp predict``: a table in, the table with predictions out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import Json, NumSamples, Run, Seed
from gpflow_dwp.files import replacing
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import numpy.typing as npt

    from gpflow_dwp.cli.trained_run import TrainedRun
    from gpflow_dwp.data.cells import Cells
    from gpflow_dwp.evaluation.predictions import LabelPredictions, NumberPredictions

__all__ = ["predict"]

_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}


def predict(
    run: Run,
    table: Path,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    overwrite: bool = False,  # which the gate of outputs asks for
    json: Json = False,
) -> None:
    """Add predictions to a table, with the model of a run directory.

    They are the mean and 95% interval of each row, or the probability of each class.

    example:

        gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv

    :param table: CSV or Parquet file with the columns of training.
    :param out: File to write: the table with columns added, Parquet if it ends in .parquet, else
        CSV.
    :param overwrite: Replace --out if it exists.
    :param seed: Seed of the draws.
    """
    from gpflow_dwp import evaluation
    from gpflow_dwp.cli.reports import as_json, report_cells
    from gpflow_dwp.cli.trained_run import read_model

    with user_mistakes():
        if _is_parquet(out):
            import_optional("pyarrow", "cli")
        if _packing(out) == "zstd" and find_spec("zstandard") is None:
            raise UsageError(
                f"{out} needs zstandard, which is not installed: python -m pip install zstandard"
            )
        trained, units = read_model(run)
        cells, X = trained.read_rows(table)
        if _is_parquet(out):
            cells.check_has(cells.header, "further")  # once each
        names = _names(trained)
        clash = sorted({*names} & {*cells.header, *map(str, cells.original.index.names)})
        if clash:
            raise UsageError(f"{table} has a column {clash[0]!r} already")
    encoder = trained.encoder
    report_cells("predict", encoder, cells)
    predictions = evaluation.predict(units, X, num_samples=num_samples, seed=seed)
    columns = dict(zip(names, _columns(predictions, trained), strict=True))
    with user_mistakes():
        _write(out, _typed(cells, trained, out).assign(**columns))
    if json:
        counts = {"unseen": encoder.unseen(cells), "filled": encoder.count_filled(cells)}
        print(as_json({"out": str(out), "rows": len(X), **counts}))
    else:
        print(f"{len(X)} predictions are in {out}")


def _names(run: TrainedRun) -> list[str]:
    """Names of the columns that are added to the user's table."""
    from gpflow_dwp.evaluation.predictions import INTERVAL

    name, percent = run.target_name, f"{100 * INTERVAL:g}"
    if run.classes is None:
        parts = ["mean", "sd", f"lower_{percent}", f"upper_{percent}"]
    else:
        parts = ["predicted", *(f"probability_{label}" for label in run.classes)]
    return [f"{name}_{part}" for part in parts]


def _columns(
    predictions: NumberPredictions | LabelPredictions, run: TrainedRun
) -> list[npt.NDArray[Any]]:
    """What these columns hold."""
    import numpy as np

    from gpflow_dwp.evaluation.predictions import NumberPredictions

    if isinstance(predictions, NumberPredictions):
        return [predictions.mean, predictions.deviation, predictions.lower, predictions.upper]
    return [np.array(run.classes)[predictions.labels], *predictions.probabilities.T]


def _typed(cells: Cells, run: TrainedRun, path: Path) -> Any:
    """The rows of a table with the types of its file, or with numbers where only text is known."""
    if not _is_parquet(path) or cells.lines is None:
        return cells.original
    frame = cells.original.copy()
    for name in run.encoder.columns:
        if name not in run.encoder.categories:
            frame[name] = cells.numbers(name, missing=True)
    return frame


def _write(path: Path, frame: Any) -> None:
    """Write a file as a whole or not at all; with the table's index, if it has a name."""
    index = any(name is not None for name in frame.index.names)
    with replacing(path) as partial:
        if _is_parquet(path):
            frame.to_parquet(partial, index=index)
        else:
            packing = _packing(path)
            frame.to_csv(partial, index=index, encoding="utf-8", compression=packing)


def _packing(path: Path) -> str | dict[str, str] | None:
    """How pandas writes a CSV file of this name, such as predictions.csv.gz, to read it again."""
    name, suffix = path.name.lower(), path.suffix.lower()
    if suffix == ".tar":
        return {"method": "tar", "mode": "w"}
    if name.endswith((".tar.gz", ".tar.bz2", ".tar.xz")):
        return {"method": "tar", "mode": f"w:{suffix[1:]}"}
    if suffix == ".zip":
        return {"method": "zip", "archive_name": path.stem}
    return _PACKED.get(suffix)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
