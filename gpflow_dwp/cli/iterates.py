"""``gpflow-dwp iterates``: experiments with posteriors over training iterates."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.experiments import (
    compare_iterate_posteriors,
    compare_iterates_with_posterior,
    compare_predictions,
    recover_factor_models,
)
from gpflow_dwp.optional import import_optional
from gpflow_dwp.study import describe_provenance

__all__ = ["run_iterates"]

_Part = tuple[dict[str, Any], Callable[[], Iterator[dict[str, Any]]]]


def run_iterates(options: argparse.Namespace) -> None:
    """Run the parts of an experiment that its table lacks, and add them to it one by one."""
    pandas = import_optional("pandas", "cli")
    path = options.out
    try:
        table = pandas.read_csv(path) if path.exists() else pandas.DataFrame()
    except (OSError, ValueError) as error:
        raise UsageError(f"--out {path} cannot be read as a table: {error}") from error
    provenance = describe_provenance("float64", int(os.environ.get("TF_NUM_INTRAOP_THREADS", "0")))
    versions = "; ".join(f"{name} {number}" for name, number in provenance.pop("versions").items())
    groups, values = _COLUMNS[options.what]
    if len(table) and not {*groups, *values} <= set(table.columns):
        raise UsageError(f"--out {path} holds another experiment; choose another name.")
    for key, run in _parts(options):
        if len(table) and (table[list(key)] == list(key.values())).all(axis=1).any():
            continue
        if not options.quiet:
            print(", ".join(f"{k} {v}" for k, v in key.items()), file=sys.stderr, flush=True)
        rows = pandas.DataFrame([{**row, **provenance, "versions": versions} for row in run()])
        table = pandas.concat([table, rows], ignore_index=True)
        temporary = path.with_name(f".{path.name}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(temporary, index=False)
        temporary.replace(path)
    summary = table.groupby(groups, sort=False)[values].agg(["mean", "sem"])
    if options.json:
        summary.columns = [f"{name}_{statistic}" for name, statistic in summary.columns]
        print(summary.reset_index().to_json(orient="records"))
    else:
        print(summary.round(4).to_string())


def _parts(options: argparse.Namespace) -> Iterator[_Part]:
    if options.what == "factor-analysis":
        for dimension in options.dimensions:
            for largest in (10.0, 100.0, 1000.0):
                yield (
                    {"dimension": dimension, "largest": largest},
                    partial(recover_factor_models, dimension, largest, num_trials=options.trials),
                )
    elif options.what == "linear-posterior":
        yield {"trial": 0}, partial(compare_iterates_with_posterior, options.trials)
    elif options.what == "linear-prediction":
        for dataset in options.datasets:
            yield (
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
                yield (
                    {"dataset": dataset, "split": split},
                    partial(
                        compare_iterate_posteriors,
                        dataset,
                        split,
                        num_steps=options.steps,
                        uci_folder=options.uci_folder,
                    ),
                )


_COLUMNS = {
    "factor-analysis": (
        ["dimension", "largest", "num_samples", "algorithm"],
        ["relative_distance", "wasserstein_distance"],
    ),
    "linear-posterior": (
        ["learning_rate", "weight_decay", "batch_size", "window"],
        ["distance_of_means", "distance_of_covariances", "squared_wasserstein_distance"],
    ),
    "linear-prediction": (["dataset", "predictor"], ["mse"]),
    "deep-wishart": (["dataset", "predictor"], ["test_log_likelihood", "rmse"]),
}
