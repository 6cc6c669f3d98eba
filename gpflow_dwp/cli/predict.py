"""``gpflow-dwp predict``: a table in, the table with predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import Json, NumSamples, Run, Seed
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import replacing
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpflow_dwp.cli.run_description import RunDescription
    from gpflow_dwp.data import Cells

__all__ = ["predict", "read_rows"]


def predict(
    run: Run,
    table: Path,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    overwrite: bool = False,
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
    :param seed: For the draws.
    """
    from gpflow_dwp.cli.predictions import predict
    from gpflow_dwp.cli.reports import as_json, check_out, report_cells
    from gpflow_dwp.cli.run_description import read_model
    from gpflow_dwp.data import Standardiser

    with user_mistakes():
        check_out(out, overwrite=overwrite)
        if _is_parquet(out):
            import_optional("pyarrow", "cli")
        trained, model = read_model(run)
        cells, X = read_rows(table, trained)
        inputs = trained.standardise_inputs(X, cells)
    report_cells("predict", trained.encoder, cells)
    target = None if trained.target is None else Standardiser.from_dict(trained.target)
    predictions = predict(model, inputs, target, num_samples=num_samples, seed=seed)
    columns = predictions.columns(trained.target_name, trained.classes)
    with user_mistakes():
        clash = sorted(set(columns) & {*cells.header, *map(str, cells.original.index.names)})
        if clash:
            raise UsageError(f"{table} has a column {clash[0]!r} already")
        _write(out, _typed(cells, trained, out).assign(**columns))
    if json:
        encoder = trained.encoder
        counts = {"unseen": encoder.unseen(cells), "filled": encoder.count_filled(cells)}
        print(as_json({"out": str(out), "rows": len(X), **counts}))
    else:
        print(f"{len(X)} predictions are in {out}")


def read_rows(path: Path, run: RunDescription) -> tuple[Cells, npt.NDArray[np.float64]]:
    """Return a table's cells, and its inputs in raw units, [N, D].

    :param path: The table.
    :param run: Of the model that is to predict it.
    :raises TableError: If the table cannot be used.
    """
    from gpflow_dwp.data import read_cells

    cells = read_cells(path)
    cells.check_has(run.encoder.columns, "feature")
    if not len(cells):
        raise TableError(f"{cells.path}: no data rows below the header")
    return cells, run.encoder.transform(cells)


def _typed(cells: Cells, run: RunDescription, path: Path) -> Any:
    """The rows of a table with the types of its file, or with numbers where only text is known."""
    if not _is_parquet(path) or cells.lines is None:
        return cells.original
    frame = cells.original.copy()
    for name in run.encoder.columns:
        if name not in run.categories:
            frame[name] = cells.numbers(name, missing=True)
    return frame


def _write(path: Path, frame: Any) -> None:
    """Write a file as a whole or not at all; with the table's index, if it has a name."""
    index = any(name is not None for name in frame.index.names)
    with replacing(path) as partial:
        if _is_parquet(path):
            frame.to_parquet(partial, index=index)
        else:
            frame.to_csv(partial, index=index, encoding="utf-8")


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
