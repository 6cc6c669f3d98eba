"""From options to everything that ``gpflow-dwp fit`` needs: rows, units, an untrained model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.cli.callbacks import check_log, check_stopping
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_options import CompleteOptions
from gpflow_dwp.cli.model_choice import build_model, make_likelihood
from gpflow_dwp.cli.reports import report_cells
from gpflow_dwp.cli.run_directory import check_apart, hold_directory, resume_directory
from gpflow_dwp.cli.unfinished import UnfinishedRun
from gpflow_dwp.cli.units import fit_standardiser, standardise
from gpflow_dwp.data import (
    ColumnEncoder,
    SplitTable,
    Standardiser,
    Table,
    load_yacht,
    read_split_table,
    split_table,
)
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.optional import import_optional

__all__ = ["PreparedRun", "prepare_run"]


class PreparedRun(NamedTuple):
    """Everything that a run needs, checked before anything is trained.

    :param directory: Of the run.
    :param unfinished: What goes on if this run is cut off.
    :param train: Rows to train on, in raw units.
    :param validation: Rows that say when to stop; None for no early stopping.
    :param test: Rows to judge on.
    :param encoder: What made numbers of the table's columns.
    :param inputs: Standardiser of the inputs.
    :param target: Standardiser of the target; None for labels.
    :param model: The untrained model.
    """

    directory: Path
    unfinished: UnfinishedRun
    train: Table
    validation: Table | None
    test: Table
    encoder: ColumnEncoder
    inputs: Standardiser
    target: Standardiser | None
    model: VariationalModel

    def standardised(self, table: Table) -> tuple[Array, Array]:
        """X and Y in the model's units."""
        return _standardise(table, self.inputs, self.target)


def prepare_run(options: CompleteOptions, holding: contextlib.ExitStack) -> PreparedRun:
    """Read, split, standardise, build, and hold the run's directory.

    :param options: Complete ones of ``gpflow-dwp fit``.
    :param holding: Lets go of the directory.
    :raises UsageError: If options do not go together or with the table.
    :raises TableError: If the table cannot be used.
    :raises ValueError: If an option's value cannot be used.
    """
    # Figures are drawn at the end; that matplotlib is missing should be said now.
    import_optional("matplotlib", "cli")
    import_optional("yaml", "cli")
    check_log(options)
    check_stopping(options)
    if options.out is not None:
        check_apart("--log", options.log, options.out)
        check_apart("the table", options.table, options.out)
    split = _read(options)
    train, test, validation = split.train, split.test, None
    if options.validation_fraction is not None:
        train, validation = split_table(train, options.validation_fraction, options.seed)
    _check_training_rows(train)
    if split.cells is not None:
        report_cells("fit", split.encoder, split.cells)
    inputs = fit_standardiser(train.X, names=train.feature_names, path=options.table)
    target = None
    if train.task == "regression":
        target = fit_standardiser(train.Y, names=(train.target_name,), path=options.table)
    for table in (test, *([] if validation is None else [validation])):
        _standardise(table, inputs, target, options.table)
    data = _standardise(train, inputs, target, options.table)
    target_scale = 1.0 if target is None else float(target.scale[0])
    model = build_model(options, data, make_likelihood(train), target_scale)
    directory, unfinished = _begin(options, holding)
    return PreparedRun(
        directory, unfinished, train, validation, test, split.encoder, inputs, target, model
    )


def _begin(options: CompleteOptions, holding: contextlib.ExitStack) -> tuple[Path, UnfinishedRun]:
    """The run's directory, and the run that is begun in it or goes on."""
    if options.resume is not None:
        unfinished = holding.enter_context(resume_directory(options.resume))
        unfinished.check_table(options.table)
        return options.resume, unfinished
    directory = holding.enter_context(
        hold_directory(options.out, options.table, overwrite=options.overwrite)
    )
    unfinished = UnfinishedRun.begin(
        directory,
        lambda path: write_configuration(path, "fit", options),
        options.table,
        options.log,
    )
    if options.log is not None:
        options.log.unlink(missing_ok=True)  # check_log refused what is not to be replaced
    return directory, unfinished


def _standardise(
    table: Table, inputs: Standardiser, target: Standardiser | None, path: Path | None = None
) -> tuple[Array, Array]:
    """X and Y in the model's units."""

    def place(row: int) -> str:
        return "a row that is held out"

    X = standardise(inputs, table.X, names=table.feature_names, path=path, place=place)
    if target is None:
        return X, table.Y
    return X, standardise(target, table.Y, names=(table.target_name,), path=path, place=place)


def _read(options: CompleteOptions) -> SplitTable:
    if options.table is None:
        of_a_table = (options.target, options.categorical, options.columns, options.drop)
        if any(of_a_table) or options.task != "regression":
            raise UsageError("--target and --task belong to a table of yours; name its CSV file")
        table = load_yacht()
        parts = split_table(table, options.test_fraction, options.seed)
        return SplitTable(*parts, ColumnEncoder(table.feature_names))
    if options.target is None:
        raise UsageError("--target is missing: name the column to predict")
    if options.columns and options.drop:
        raise UsageError("--drop cannot go with --columns, which names all inputs")
    return read_split_table(
        options.table,
        options.target,
        options.task,
        test_fraction=options.test_fraction,
        seed=options.seed,
        columns=options.columns or None,
        drop=options.drop,
        categorical=options.categorical,
        impute=options.impute,
    )


def _check_training_rows(train: Table) -> None:
    """Refuse rows that have lost a class, or all variation of the target, to the test rows."""
    values = np.unique(train.Y)
    if len(values) < (2 if train.classes is None else len(train.classes)):
        what = "one value" if train.classes is None else f"{len(values)} of the classes"
        raise UsageError(
            f"the {len(train.X)} training rows hold {what} only of {train.target_name!r}: "
            "choose another --test-fraction or --seed"
        )
