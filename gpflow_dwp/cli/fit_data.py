"""The rows of ``gpflow-dwp fit``: read, split, and brought to the model's units."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.cli.reports import encoding_notes
from gpflow_dwp.data import ColumnEncoder, Standardiser, Table, load_yacht
from gpflow_dwp.data.reading import Format
from gpflow_dwp.data.table import split_table
from gpflow_dwp.data.tables import SplitTable, read_to_split
from gpflow_dwp.exceptions import TableError

if TYPE_CHECKING:
    from gpflow.likelihoods import Likelihood

    from gpflow_dwp.base import Array

__all__ = ["FitData", "read_fit_data"]


@dataclass(frozen=True, eq=False)
class FitData:
    """What a run is trained and judged on.

    :param train: Rows to train on, in raw units.
    :param validation: Rows that say when to stop; None for no early stopping.
    :param test: Rows to judge on.
    :param encoder: What made numbers of the table's columns.
    :param inputs: Standardiser of the inputs.
    :param target: Standardiser of the target; None for labels.
    """

    train: Table
    validation: Table | None
    test: Table
    encoder: ColumnEncoder
    inputs: Standardiser
    target: Standardiser | None

    @property
    def summary(self) -> str:
        """A line that says how many rows there are, and of what."""
        train, validation = self.train, self.validation
        held_out = "" if validation is None else f"{len(validation.X)} validation rows, "
        return (
            f"{train.target_name}: {len(train.X)} training rows, {held_out}{len(self.test.X)} test "
            f"rows, {train.X.shape[1]} inputs"
        )

    @property
    def likelihood(self) -> Likelihood | None:
        """That of labels; None for a Gaussian one."""
        from gpflow_dwp.likelihoods.named import likelihood_of_labels

        classes = self.train.classes
        return None if classes is None else likelihood_of_labels(len(classes))

    @property
    def offset(self) -> float:
        """What to add to a bound per row to have it in raw units."""
        return 0.0 if self.target is None else self.target.log_density_offset

    @property
    def rows(self) -> tuple[Array, Array]:
        """X [N, D] and Y [N, 1] of the rows to train on, in the model's units."""
        return self.standardised(self.train)

    @property
    def validation_rows(self) -> tuple[Array, Array] | None:
        """Likewise."""
        return None if self.validation is None else self.standardised(self.validation)

    def standardised(self, table: Table) -> tuple[Array, Array]:
        """Inputs and targets in the model's units."""
        Y = table.Y if self.target is None else self.target.transform(table.Y)
        return self.inputs.transform(table.X), Y


def read_fit_data(options: FitOptions) -> FitData:
    """Read the table, split it, and learn units from the training rows.

    :raises UsageError: If the training rows hold nothing to learn.
    :raises TableError: If the table cannot be used.
    """
    split = _read(options)
    train, validation = split.train, None
    if options.validation_fraction is not None:
        try:
            train, validation = split_table(train, options.validation_fraction, options.seed)
        except TableError as error:
            message = str(error).replace("test_fraction", "--validation-fraction")
            raise UsageError(message) from error
    _check_training_rows(train)
    try:
        inputs = Standardiser.fit(train.X, names=train.feature_names)
        target = None
        if train.task == "regression":
            target = Standardiser.fit(train.Y, names=(train.target_name,))
    except ValueError as error:
        raise TableError(f"{options.table}: {error}") from error
    for table in [split.test] if validation is None else [split.test, validation]:
        where, held_out = options.table, "a row that is held out"
        inputs.check_near(table.X, names=table.feature_names, where=where, place=held_out)
        if target is not None:
            target.check_near(table.Y, names=(table.target_name,), where=where, place=held_out)
    return FitData(train, validation, split.test, split.encoder, inputs, target)


def _read(options: FitOptions) -> SplitTable:
    if options.table is None or options.target is None:
        table = load_yacht()
        parts = split_table(table, options.test_fraction, options.seed)
        return SplitTable(*parts, ColumnEncoder(table.feature_names))
    read = read_to_split(
        options.table,
        options.target,
        options.task,
        form=Format(options.separator, options.decimal, options.encoding, options.missing),
        columns=options.columns,
        drop=options.drop,
        categorical=options.categorical,
        impute=options.impute,
    )
    split = read.split(options.test_fraction, options.seed)
    for note in [*read.notes, *encoding_notes(split.encoder, read.file.frame)]:
        print(f"gpflow-dwp fit: {note}", file=sys.stderr)
    return split


def _check_training_rows(train: Table) -> None:
    """Refuse rows that have lost a class, or all variation of the target, to the test rows."""
    values = np.unique(train.Y)
    if len(values) < (2 if train.classes is None else len(train.classes)):
        what = "one value" if train.classes is None else f"{len(values)} of the classes"
        raise UsageError(
            f"the {len(train.X)} training rows hold {what} only of {train.target_name!r}: "
            "choose another --test-fraction or --seed"
        )
