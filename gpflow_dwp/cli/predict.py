"""``gpflow-dwp predict``: a table in, the table with predictions out."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.predictions import predict
from gpflow_dwp.cli.reports import check_out, report_cells
from gpflow_dwp.cli.run_description import RunDescription
from gpflow_dwp.cli.run_directory import MODEL, read_run
from gpflow_dwp.data import Cells, Standardiser, read_cells
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import replacing
from gpflow_dwp.models import load_model
from gpflow_dwp.optional import import_optional

__all__ = ["read_rows", "run_predict"]


def run_predict(options: argparse.Namespace) -> None:
    """Add predictions to a table.

    :param options: As ``gpflow-dwp predict`` parses them.
    :raises UsageError: If the run or the table cannot be used, or the output exists.
    """
    with user_mistakes():
        check_out(options.out, overwrite=options.overwrite)
        if _is_parquet(options.out):
            import_optional("pyarrow", "cli")
        with read_run(options.run) as folder:
            run, model = RunDescription.read(folder), load_model(folder / MODEL)
        cells, X = read_rows(options.table, run)
        inputs = run.standardise_inputs(X, cells)
    report_cells("predict", run.encoder, cells)
    target = None if run.target is None else Standardiser.from_dict(run.target)
    predictions = predict(
        model,
        inputs,
        target,
        num_samples=options.num_samples,
        seed=options.seed,
    )
    columns = predictions.columns(run.target_name, run.classes)
    with user_mistakes():
        clash = sorted(set(columns) & {*cells.header, *map(str, cells.original.index.names)})
        if clash:
            raise UsageError(f"{options.table} has a column {clash[0]!r} already")
        _write(options.out, _typed(cells, run, options.out).assign(**columns))
    if options.json:
        counts = {"unseen": run.encoder.unseen(cells), "filled": run.encoder.count_filled(cells)}
        print(json.dumps({"out": str(options.out), "rows": len(X), **counts}))
    else:
        print(f"{len(X)} predictions are in {options.out}")


def read_rows(path: Path, run: RunDescription) -> tuple[Cells, npt.NDArray[np.float64]]:
    """Return a table's cells, and its inputs in raw units, [N, D].

    :param path: The table.
    :param run: Of the model that is to predict it.
    :raises TableError: If the table cannot be used.
    """
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
