"""``gpflow-dwp benchmark variance``: the noise of gradients, by the estimator of the bound."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from typing import Any

from gpflow_dwp.benchmarks import ESTIMATORS, benchmark_variance, posterior_arguments
from gpflow_dwp.cli.reports import write_json
from gpflow_dwp.data import UCI_DATASETS, load_uci
from gpflow_dwp.files import replacing
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.study import describe_provenance
from gpflow_dwp.validation import check_choice

__all__ = ["run_variance"]


def run_variance(options: argparse.Namespace, report: Callable[[str], None]) -> None:
    """Measure, print tables, and write a CSV file where that is asked for."""
    check_choice(UCI_DATASETS, **{"--dataset": options.dataset})
    data = load_uci(options.dataset, options.split, folder=options.uci_folder).train
    model = build_deep_wishart_process(
        data,
        options.depth,
        num_inducing=options.num_inducing,
        output="pseudo_targets",
        seed=options.seed,
        **posterior_arguments(options.model),
    )
    provenance = describe_provenance("float64", 1)
    rows = benchmark_variance(
        model,
        data,
        num_steps=options.num_steps,
        num_samples=options.num_samples,
        num_gradients=options.num_gradients,
        seed=options.seed,
        report=report,
    )
    whole = {"provenance": provenance, "rows": [_flat(row) for row in rows]}
    if not write_json(options.json, whole):
        _print(rows)
    if options.out is None:
        return
    settings = ("dataset", "split", "depth", "model", "num_inducing", "num_gradients", "seed")
    source = {name: provenance[name] for name in ("dtype", "commit", "date", "machine")}
    source["versions"] = "; ".join(f"{name} {v}" for name, v in provenance["versions"].items())
    with (
        replacing(options.out) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        records = [
            {name: getattr(options, name) for name in settings} | _flat(row) | source
            for row in rows
        ]
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    variances = row["variances"]
    return (
        {name: row[name] for name in ("step", "estimator", "num_samples")}
        | {group: f"{variance.value:.4g}" for group, variance in variances.items()}
        | {
            f"{group}, standard error": f"{variance.standard_error:.2g}"
            for group, variance in variances.items()
        }
    )


def _print(rows: list[dict[str, Any]]) -> None:
    """For each place and number of draws a table of groups and estimators."""
    groups = list(rows[0]["variances"])
    width = max(map(len, groups)) + 2
    columns = [max(len(name), 9) + 2 for name in ESTIMATORS]
    for step, count in dict.fromkeys((row["step"], row["num_samples"]) for row in rows):
        found = {
            row["estimator"]: row["variances"]
            for row in rows
            if (row["step"], row["num_samples"]) == (step, count)
        }
        print(f"variance of the gradient, in nats², step {step}, S = {count}")
        header = "".join(f"{name:>{size}}" for name, size in zip(found, columns, strict=True))
        print(" " * width + header)
        for group in groups:
            cells = zip(found.values(), columns, strict=True)
            print(f"{group:{width}}" + "".join(f"{v[group].value:>{size}.3g}" for v, size in cells))
        print(flush=True)
