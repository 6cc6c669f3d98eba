"""``gpflow-dwp predict``: a table in, the table with predictions out."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.predictions import predict
from gpflow_dwp.cli.run_directory import MODEL, RunDescription
from gpflow_dwp.data import Standardiser, read_features
from gpflow_dwp.models import load_model
from gpflow_dwp.optional import import_optional

__all__ = ["run_predict"]


def run_predict(options: argparse.Namespace) -> None:
    """Add predictions to a table.

    :param options: As ``gpflow-dwp predict`` parses them.
    :raises UsageError: If the run or the table cannot be used, or the output exists.
    """
    with user_mistakes():
        if options.out.is_dir():
            raise UsageError(f"{options.out} is a directory; --out takes a file")
        if options.out.exists() and not options.overwrite:
            raise UsageError(f"{options.out} exists; give --overwrite to replace it")
        if not options.out.resolve().parent.is_dir():
            raise UsageError(f"{options.out.resolve().parent} is not a directory")
        run = RunDescription.read(options.run)
        X = read_features(options.table, run.feature_names)
        model = load_model(options.run / MODEL)
        table = _read_text(options.table)
    target = None if run.target is None else Standardiser.from_dict(run.target)
    predictions = predict(
        model,
        run.standardise_inputs(X),
        target,
        num_samples=options.num_samples,
        seed=options.seed,
    )
    columns = predictions.columns(run.target_name, run.classes)
    with user_mistakes():
        clash = sorted(set(columns) & set(table.columns))
        if clash:
            raise UsageError(f"{options.table} has a column {clash[0]!r} already")
        _write(options.out, table.assign(**columns).to_csv(index=False))
    print(f"{len(X)} predictions are in {options.out}")


def _read_text(path: Path) -> Any:
    """The table as it was written, for the rows that :func:`read_features` reads."""
    cells = import_optional("pandas", "cli").read_csv(
        path,
        header=None,
        index_col=False,
        dtype=str,
        keep_default_na=False,
        skip_blank_lines=False,
        skipinitialspace=True,
        encoding="utf-8-sig",
    )
    cells = cells.fillna("").apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)]
    return cells.iloc[1:].set_axis(list(cells.iloc[0]), axis=1)


def _write(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
