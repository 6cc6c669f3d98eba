"""``gpflow-dwp fit``: what can be refused is refused before TensorFlow is imported."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass

import numpy as np

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.options import FitOptions, complete, read
from gpflow_dwp.cli.runs import OPTIONS, Run, load_tensorflow, new_run
from gpflow_dwp.data import Standardiser, Table, load_yacht
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.data.table import read_to_split
from gpflow_dwp.exceptions import NonFiniteBoundError, TableError
from gpflow_dwp.files import seal, write_whole
from gpflow_dwp.optional import check_optional
from gpflow_dwp.validation import Array

__all__ = ["FitData", "fit", "read_fit_data"]

_DEFAULTS = FitOptions()


def fit(options: FitOptions = _DEFAULTS) -> None:
    """Train on a table, compare with simpler models, write a run directory.

    A deep Wishart process, or one of its rivals, is judged on rows that were held out, next to
    linear regression, gradient boosting and GPflow's Gaussian process. Without a table it takes the
    resistance of 308 sailing yachts.

    examples:

        gpflow-dwp fit
        gpflow-dwp fit houses.csv --target price
        gpflow-dwp fit irises.csv --target species --task classification --depth 2
        gpflow-dwp fit houses.parquet --target price --categorical town style --impute
        gpflow-dwp fit houses.csv --target price --model DGP --depth 2
        gpflow-dwp fit --resume runs/houses-1
    """
    with contextlib.ExitStack() as holding:
        with user_mistakes():
            chosen, goes_on = options, None if options.resume is None else Run(options.resume)
            if goes_on is not None:
                if not (goes_on.work / OPTIONS).is_file():
                    raise UsageError(f"{goes_on.directory} holds no run that could go on")
                chosen = read(goes_on.work / OPTIONS, options)
            chosen = complete(chosen)
            for package in ("matplotlib", "sklearn"):  # which are needed once training has ended
                check_optional(package, "cli")
            data = read_fit_data(chosen)
            name = "yacht" if chosen.table is None else chosen.table.stem
            run = holding.enter_context(goes_on.hold() if goes_on else new_run(chosen.out, name))
            if goes_on is None:
                write_whole(run.work / OPTIONS, json.dumps(seal(chosen.plain()), indent=1))
        try:
            load_tensorflow(f"{data.summary}; TensorFlow is loading")
            from gpflow_dwp.cli.training import run_fit

            run_fit(run, data, chosen)
        except BaseException as error:
            is_kept = run.has_steps and not isinstance(error, NonFiniteBoundError)
            if not is_kept and goes_on is None:
                run.discard()
            elif isinstance(error, KeyboardInterrupt):
                error.args = (f"gpflow-dwp fit --resume {run.directory} goes on",)
            raise


@dataclass(frozen=True, eq=False)
class FitData:
    """What a run is trained and judged on, in raw units; labels have no standardiser."""

    train: Table
    test: Table
    encoder: ColumnEncoder
    inputs: Standardiser
    target: Standardiser | None

    @property
    def summary(self) -> str:
        """A line that says how many rows there are, and of what."""
        train = self.train
        return (
            f"{train.target_name}: {len(train.X)} training rows, {len(self.test.X)} test rows, "
            f"{train.X.shape[1]} inputs"
        )

    @property
    def offset(self) -> float:
        """What to add to a bound per row to have it in raw units."""
        return 0.0 if self.target is None else self.target.log_density_offset

    def standardised(self, table: Table) -> tuple[Array, Array]:
        """Inputs [N, D] and targets [N, 1] in the model's units."""
        Y = table.Y if self.target is None else self.target.transform(table.Y)
        return self.inputs.transform(table.X), Y


def read_fit_data(options: FitOptions) -> FitData:
    """Read the table, split it, and learn units from the training rows."""
    if options.table is None or options.target is None:
        train, test = load_yacht().split(options.test_fraction, options.seed)
        encoder = ColumnEncoder(train.feature_names)
    else:
        read = read_to_split(
            options.table,
            options.target,
            options.task,
            form=options,
            drop=options.drop,
            categorical=options.categorical,
            impute=options.impute,
        )
        train, test, encoder = read.split(options.test_fraction, options.seed)
        for note in [*read.notes, *encoder.notes(read.file.frame)]:
            print(f"gpflow-dwp fit: {note}", file=sys.stderr)
    # The other rows may have all rows of a class, or all variation of the target.
    values = np.unique(train.Y)
    if len(values) < len(train.classes or (0, 1)):
        what = "one value" if train.classes is None else f"{len(values)} of the classes"
        raise TableError(
            f"the {len(train.X)} training rows hold {what} only of {train.target_name!r}: "
            "choose another --test-fraction or --seed"
        )
    target = Standardiser.fit(train.Y) if train.classes is None else None
    return FitData(train, test, encoder, Standardiser.fit(train.X), target)
