"""The rows of ``gpflow-dwp fit``: read, split, and brought to the model's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.cli.reports import report_cells
from gpflow_dwp.data import ColumnEncoder, Standardiser, Table, load_yacht
from gpflow_dwp.data.reading import SplitTable, read_split_table
from gpflow_dwp.data.table import split_table
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.likelihoods.labels import likelihood_of_labels

__all__ = ["FitData", "read_fit_data"]


class FitData(NamedTuple):
    """What a run is trained and judged on.

    :param train: Rows to train on, in raw units.
    :param validation: Rows that say when to stop; None for no early stopping.
    :param test: Rows to judge on.
    :param encoder: What made numbers of the table's columns.
    :param inputs: Standardiser of the inputs.
    :param target: Standardiser of the target; None for labels.
    :param rows: X [N, D] and Y [N, 1] of the rows to train on, in the model's units.
    :param validation_rows: Likewise.
    :param test_rows: Likewise.
    """

    train: Table
    validation: Table | None
    test: Table
    encoder: ColumnEncoder
    inputs: Standardiser
    target: Standardiser | None
    rows: tuple[Array, Array]
    validation_rows: tuple[Array, Array] | None
    test_rows: tuple[Array, Array]

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
        classes = self.train.classes
        return None if classes is None else likelihood_of_labels(len(classes))

    @property
    def offset(self) -> float:
        """What to add to a bound per row to have it in raw units."""
        return 0.0 if self.target is None else self.target.log_density_offset


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
    if split.cells is not None:
        report_cells("fit", split.encoder, split.cells)
    try:
        inputs = Standardiser.fit(train.X, names=train.feature_names)
        target = None
        if train.task == "regression":
            target = Standardiser.fit(train.Y, names=(train.target_name,))
    except ValueError as error:
        raise TableError(f"{options.table}: {error}") from error
    for table in [split.test] if validation is None else [split.test, validation]:
        for standardiser, values, names in (
            (inputs, table.X, table.feature_names),
            (target, table.Y, (table.target_name,)),
        ):
            if standardiser is not None:
                standardiser.check_near(
                    values,
                    names=names,
                    path=options.table,
                    place=lambda _: "a row that is held out",
                )

    def standardised(table: Table) -> tuple[Array, Array]:
        Y = table.Y if target is None else target.transform(table.Y)
        return inputs.transform(table.X), Y

    return FitData(
        *(train, validation, split.test, split.encoder, inputs, target),
        rows=standardised(train),
        validation_rows=None if validation is None else standardised(validation),
        test_rows=standardised(split.test),
    )


def _read(options: FitOptions) -> SplitTable:
    if options.table is None or options.target is None:
        table = load_yacht()
        parts = split_table(table, options.test_fraction, options.seed)
        return SplitTable(*parts, ColumnEncoder(table.feature_names))
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
