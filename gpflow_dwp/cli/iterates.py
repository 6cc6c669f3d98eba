"""``gpflow-dwp iterates``: experiments with posteriors over training iterates."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gpflow_dwp.cli.errors import UsageError, exit_code, user_mistakes
from gpflow_dwp.data import UCI_DATASETS, load_uci
from gpflow_dwp.experiments import (
    compare_iterate_posteriors,
    compare_iterates_with_posterior,
    compare_predictions,
    recover_factor_models,
)
from gpflow_dwp.files import replacing
from gpflow_dwp.optional import import_optional
from gpflow_dwp.study import describe_provenance
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["run_iterates"]

_RANK = 10


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


def run_iterates(options: argparse.Namespace) -> int:
    """Run the parts of an experiment that its table lacks, and add them to it one by one.

    :param options: As ``gpflow-dwp iterates`` parses them.
    :return: The exit code: 0, or 130 for Ctrl-C that leaves finished parts.
    :raises UsageError: If the input cannot be used; nothing has been computed then.
    """
    path, experiment = options.out, _EXPERIMENTS[options.what]
    table = _read_table(path, experiment)
    parts = [part for part in _parts(options) if not _holds(table, part, experiment, options)]
    with user_mistakes():
        _check(options, parts)
    try:
        table = _run_parts(parts, table, options)
    except KeyboardInterrupt as error:
        if not path.exists():
            raise
        print(
            f"gpflow-dwp iterates: interrupted; finished parts are in {path}, and the same command "
            "runs the others",
            file=sys.stderr,
        )
        return exit_code(error)
    summary = table.groupby(experiment.groups, sort=False)[experiment.values].agg(["mean", "sem"])
    if options.json:
        summary.columns = [f"{name}_{statistic}" for name, statistic in summary.columns]
        print(summary.reset_index().to_json(orient="records"))
    else:
        print(summary.round(4).to_string())
    return 0


def _run_parts(parts: list[_Part], table: Any, options: argparse.Namespace) -> Any:
    """Add parts to a table, and write it after each."""
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


def _holds(table: Any, part: _Part, experiment: _Experiment, options: argparse.Namespace) -> bool:
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


def _title(part: _Part, options: argparse.Namespace) -> str:
    return ", ".join(f"{name} {value}" for name, value in part.key.items()) or options.what


def _check(options: argparse.Namespace, parts: list[_Part]) -> None:
    """Find before the first part runs what would end a later one.

    :raises ValueError: If an argument or a data set cannot be used.
    """
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


def _parts(options: argparse.Namespace) -> Iterator[_Part]:
    if options.what == "factor-analysis":
        for dimension in options.dimensions:
            for largest in (10.0, 100.0, 1000.0):
                yield _Part(
                    {"dimension": dimension, "largest": largest},
                    partial(
                        recover_factor_models,
                        dimension,
                        largest,
                        rank=_RANK,
                        num_trials=options.trials,
                    ),
                )
    elif options.what == "linear-posterior":
        yield _Part({}, partial(compare_iterates_with_posterior, options.trials))
    elif options.what == "linear-prediction":
        for dataset in options.datasets:
            yield _Part(
                {"dataset": dataset},
                partial(
                    compare_predictions,
                    dataset,
                    num_folds=options.trials,
                    uci_folder=options.uci_folder,
                ),
            )
    else:
        for dataset in options.datasets:
            for split in range(options.splits):
                yield _Part(
                    {"dataset": dataset, "split": split},
                    partial(
                        compare_iterate_posteriors,
                        dataset,
                        split,
                        num_steps=options.steps,
                        uci_folder=options.uci_folder,
                    ),
                )


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
