"""``gpflow-dwp benchmark variance``: the noise of gradients, by the estimator of the bound."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpflow_dwp.files import replacing
from gpflow_dwp.lab.benchmarks import ESTIMATORS

__all__ = ["flat", "print_variances", "write_variances"]


def write_variances(
    path: Path, settings: Mapping[str, Any], rows: list[dict[str, Any]], provenance: dict[str, Any]
) -> None:
    """Write a CSV file of variances.

    :param path: The file.
    :param settings: What was measured, for each of its rows.
    :param rows: What :func:`gpflow_dwp.lab.benchmarks.benchmark_variance` returned.
    :param provenance: Of the numbers.
    """
    source = {name: provenance[name] for name in ("dtype", "commit", "date", "machine")}
    source["versions"] = "; ".join(f"{name} {v}" for name, v in provenance["versions"].items())
    records = [{**settings, **flat(row), **source} for row in rows]
    with replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with a column for each group's variance, and its standard error."""
    variances = row["variances"]
    return (
        {name: row[name] for name in ("step", "estimator", "num_samples")}
        | {group: f"{variance.value:.4g}" for group, variance in variances.items()}
        | {
            f"{group}, standard error": f"{variance.standard_error:.2g}"
            for group, variance in variances.items()
        }
    )


def print_variances(rows: list[dict[str, Any]]) -> None:
    """Print for each place and number of draws a table of groups and estimators."""
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
