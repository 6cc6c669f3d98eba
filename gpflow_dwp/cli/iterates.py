"""``gpflow-dwp iterates``: experiments with posteriors over training iterates."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cyclopts import Parameter

from gpflow_dwp.cli.errors import UsageError, going_on, user_mistakes
from gpflow_dwp.cli.parameters import (
    Json,
    Names,
    PositiveInteger,
    PositiveIntegers,
    Quiet,
    UciFolder,
)
from gpflow_dwp.files import replacing
from gpflow_dwp.optional import import_optional

__all__ = ["IteratesOptions", "iterates"]

_RANK = 10


@Parameter(name="*")
@dataclass(frozen=True)
class IteratesOptions:
    """What is run, and kept where.

    :param what: Which experiment.
    :param out: CSV table; parts that it holds are not run again, and other --trials or --steps than
        theirs are refused.
    :param trials: Seeds of the synthetic experiments, folds of linear-prediction.
    :param dimensions: Of factor-analysis.
    :param datasets: UCI data sets of the last two experiments.
    :param splits: First splits of each data set, for deep-wishart.
    :param steps: Training steps before iterates are collected, for deep-wishart.
    """

    what: Literal["factor-analysis", "linear-posterior", "linear-prediction", "deep-wishart"]
    _: KW_ONLY
    out: Path
    trials: PositiveInteger = 10
    dimensions: PositiveIntegers = (100, 1000)
    datasets: Names = ("yacht", "energy", "boston")
    splits: PositiveInteger = 3
    steps: PositiveInteger = 8_000
    uci_folder: UciFolder = None
    quiet: Quiet = False
    json: Json = False


class _Part(NamedTuple):
    """What is run at once, and marked by these values in some columns of the table."""

    key: dict[str, Any]
    run: Callable[[], Iterator[dict[str, Any]]]


class _Experiment(NamedTuple):
    """What its table is like.

    :param groups: Columns whose values tell apart what is averaged.
    :param values: Columns that are averaged.
    :param option: The option that all rows of a part have in common.
    :param column: The column that tells what it was.
    :param is_counted: Whether its different values are counted, or it holds the option itself.
    """

    groups: list[str]
    values: list[str]
    option: str
    column: str
    is_counted: bool = True


def iterates(options: IteratesOptions) -> None:
    """Rerun experiments with posteriors over training iterates.

    Every result is written with its provenance, and means and standard errors are printed:

    - factor-analysis: online and batch factor analysis of vectors drawn from factor models
    - linear-posterior: iterates of linear regression beside its exact posterior
    - linear-prediction: test errors of averages and ensembles of those iterates
    - deep-wishart: test scores of averages and ensembles of a deep Wishart process's iterates

    examples:

        gpflow-dwp iterates linear-posterior --out linear-posterior.csv
        gpflow-dwp iterates factor-analysis --dimensions 100 --out factor-analysis.csv
    """
    path, experiment = options.out, _EXPERIMENTS[options.what]
    table = _read_table(path, experiment)
    parts = [part for part in _parts(options) if not _holds(table, part, experiment, options)]
    with user_mistakes():
        _check(options, parts)
    try:
        table = _run_parts(parts, table, options)
    except KeyboardInterrupt:
        if not path.exists():
            raise
        with going_on(f"finished parts are in {path}, and the same command runs the others"):
            raise
    summary = table.groupby(experiment.groups, sort=False)[experiment.values].agg(["mean", "sem"])
    if options.json:
        summary.columns = [f"{name}_{statistic}" for name, statistic in summary.columns]
        print(summary.reset_index().to_json(orient="records"))
    else:
        print(summary.round(4).to_string())


def _run_parts(parts: list[_Part], table: Any, options: IteratesOptions) -> Any:
    """Add parts to a table, and write it after each."""
    from gpflow_dwp.lab.study import describe_provenance

    pandas, path = import_optional("pandas", "cli"), options.out
    provenance = describe_provenance("float64", int(os.environ.get("TF_NUM_INTRAOP_THREADS", "0")))
    versions = "; ".join(f"{name} {number}" for name, number in provenance.pop("versions").items())
    for part in parts:
        if not options.quiet:
            print(_title(part, options), file=sys.stderr, flush=True)
        rows = [{**row, **provenance, "versions": versions} for row in part.run()]
        table = pandas.concat([table, pandas.DataFrame(rows)], ignore_index=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial_table:
            table.to_csv(partial_table, index=False)
    return table


def _read_table(path: Path, experiment: _Experiment) -> Any:
    pandas = import_optional("pandas", "cli")
    try:
        table = pandas.read_csv(path) if path.exists() else pandas.DataFrame()
    except (OSError, ValueError) as error:
        raise UsageError(f"--out {path} cannot be read as a table: {error}") from error
    columns = {*experiment.groups, *experiment.values, experiment.column}
    if len(table) and not columns <= set(table.columns):
        raise UsageError(f"--out {path} holds another experiment; choose another name.")
    return table


def _holds(table: Any, part: _Part, experiment: _Experiment, options: IteratesOptions) -> bool:
    """Whether a table has the rows of a part, made with the same options.

    :raises UsageError: If it has rows that were made with others.
    """
    rows = table
    for name, value in part.key.items():
        rows = rows[rows[name] == value] if len(rows) else rows
    if not len(rows):
        return False
    values = rows[experiment.column]
    held = int(values.nunique() if experiment.is_counted else values.iloc[0])
    asked = getattr(options, experiment.option.removeprefix("--"))
    if held != asked:
        raise UsageError(
            f"--out {options.out} holds {_title(part, options)} with {experiment.option} {held}, "
            f"not {asked}; choose another name."
        )
    return True


def _title(part: _Part, options: IteratesOptions) -> str:
    return ", ".join(f"{name} {value}" for name, value in part.key.items()) or options.what


def _check(options: IteratesOptions, parts: list[_Part]) -> None:
    """Find before the first part runs what would end a later one.

    :raises ValueError: If an argument or a data set cannot be used.
    """
    from gpflow_dwp.data import UCI_DATASETS, load_uci
    from gpflow_dwp.validation import check_choice, check_integers

    for part in parts:
        if "dimension" in part.key:
            check_integers(at_least=_RANK, **{"--dimensions": part.key["dimension"]})
        if "dataset" not in part.key:
            continue
        dataset = part.key["dataset"]
        check_choice(UCI_DATASETS, **{"--datasets": dataset})
        split = load_uci(dataset, part.key.get("split", 0), folder=options.uci_folder)
        if options.what == "linear-prediction":
            check_integers(at_least=2, **{"--trials": options.trials})
            num_data = len(split.X_train) + len(split.X_test)
            if options.trials > num_data:
                raise ValueError(
                    f"--trials must be at most the rows of {dataset}, {num_data}, "
                    f"got {options.trials}."
                )


def _parts(options: IteratesOptions) -> Iterator[_Part]:
    from gpflow_dwp.lab import experiments

    folder = options.uci_folder
    if options.what == "factor-analysis":
        recover = partial(experiments.recover_factor_models, rank=_RANK, num_trials=options.trials)
        for dimension in options.dimensions:
            for largest in (10.0, 100.0, 1000.0):
                key = {"dimension": dimension, "largest": largest}
                yield _Part(key, partial(recover, dimension, largest))
    elif options.what == "linear-posterior":
        yield _Part({}, partial(experiments.compare_iterates_with_posterior, options.trials))
    elif options.what == "linear-prediction":
        predict = partial(
            experiments.compare_predictions, num_folds=options.trials, uci_folder=folder
        )
        for dataset in options.datasets:
            yield _Part({"dataset": dataset}, partial(predict, dataset))
    else:
        train = partial(
            experiments.compare_iterate_posteriors, num_steps=options.steps, uci_folder=folder
        )
        for dataset in options.datasets:
            for split in range(options.splits):
                yield _Part({"dataset": dataset, "split": split}, partial(train, dataset, split))


_EXPERIMENTS = {
    "factor-analysis": _Experiment(
        ["dimension", "largest", "num_samples", "algorithm"],
        ["relative_distance", "wasserstein_distance"],
        option="--trials",
        column="trial",
    ),
    "linear-posterior": _Experiment(
        ["learning_rate", "weight_decay", "batch_size", "window"],
        ["distance_of_means", "distance_of_covariances", "squared_wasserstein_distance"],
        option="--trials",
        column="trial",
    ),
    "linear-prediction": _Experiment(
        ["dataset", "predictor"], ["mse"], option="--trials", column="fold"
    ),
    "deep-wishart": _Experiment(
        ["dataset", "predictor"],
        ["test_log_likelihood", "rmse"],
        option="--steps",
        column="num_steps",
        is_counted=False,
    ),
}
