"""What more rows bring: errors of the default model on five functions of 250 to 20,000 rows.

    python ci/growth.py run --out growth [--functions periods --num-rows 1000 1001 --seeds 0]
    python ci/growth.py report growth

Errors are of the function without noise at 1,000 other points, by its deviation. The report prints
them, and the largest ratio of an error to that of fewer rows, and draws ``growth/growth.svg``.
Seeds 0 to 2 are for claims, others from 10 on.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cases.designs import GROWING, load
from cyclopts import App, Parameter
from matplotlib.figure import Figure
from study import read_lines, run_cells

from gpflow_dwp.estimator import DeepWishartRegressor

app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))
NUM_ROWS = (250, 500, 1_000, 1_001, 2_000, 2_001, 5_000, 20_000)


@dataclass(frozen=True)
class GrowthCell:
    """The default on so many rows of a function."""

    key: str
    function: str
    num_runs: int
    design: int


def run_cell(cell: GrowthCell, checkpoint_directory: str = "") -> dict[str, Any]:
    """Fit and score; ``cpu_seconds`` are of the fit."""
    X, y, T, t = load(f"{cell.function}-{cell.num_runs}", cell.design)
    warnings.simplefilter("ignore")
    noise_free = {} if GROWING[cell.function][1] else {"likelihood": "noise_free"}
    began = time.process_time()
    model = DeepWishartRegressor(random_state=cell.design, **noise_free).fit(X, y)
    seconds = time.process_time() - began
    mean, deviation = model.predict(T, return_std=True, include_noise=False)
    return {
        "rmse": float(np.sqrt(np.mean((mean - t) ** 2)) / t.std()),
        "coverage": float(np.mean(np.abs(mean - t) < 1.96 * deviation)),
        "depth": len(model.model_.layers),
        "likelihood": type(model.model_.likelihood).__name__,
        "kernel": type(model.model_.layers[0].kernel).__name__,
        "reason": model.reason_,
        "cpu_seconds": seconds,
    }


@app.command
def run(
    *,
    out: Path,
    functions: tuple[str, ...] = tuple(GROWING),
    num_rows: tuple[int, ...] = NUM_ROWS,
    seeds: tuple[int, ...] = (0,),
    jobs: int | None = None,
) -> int:
    """Run what is missing.

    :param jobs: Cells at a time (default: one a processor).
    """
    cells = [
        GrowthCell(f"{name}, {n}, {seed}", name, n, seed)
        for seed, n, name in itertools.product(seeds, num_rows, functions)
    ]
    return int(any("failure" in line for line in run_cells(cells, out, run_cell, jobs=jobs)))


@app.command
def report(folder: Path, /) -> int:
    """Print errors, depths and CPU seconds, and draw errors by rows."""
    frame = pd.DataFrame(read_lines(folder / "results.jsonl"))
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    for value in ("rmse", "coverage", "depth", "cpu_seconds"):
        table = frame.pivot_table(value, "num_runs", "function")
        print(f"\n{value}\n{table.to_string(float_format='%.3g')}")
        if value == "rmse":
            print(f"\nby fewer rows\n{(table / table.shift()).to_string(float_format='%.3f')}")
            axes.loglog(table, marker="o", label=list(table))
    axes.set(xlabel="rows", ylabel="RMSE / deviation")
    axes.legend(frameon=False)
    figure.savefig(folder / "growth.svg")
    return 0


if __name__ == "__main__":
    sys.exit(app())
