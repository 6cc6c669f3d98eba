"""Which of the default model's numbers matter: each is halved and doubled, on cases of ``cases``.

    python ci/policy.py run --out policy [--names LEVEL_NATS --cases step piston-small --seeds 10]
    python ci/policy.py report policy

The report lists for each number the cases whose model has another depth, kernel or likelihood, or
whose CRPS of new rows changes by more than a hundredth. Seeds are from 10 on: numbers are chosen by
it, and claims are made on others.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases.designs import EMULATORS, PROBLEMS, load
from cyclopts import App, Parameter
from study import read_lines, run_cells

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods.named import name_of_likelihood
from gpflow_dwp.models.named_kernels import kernel_name
from gpflow_dwp.selection import policy

app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))
NAMES = tuple(name for name in vars(policy) if name.isupper())
CASES = ("step", "xiong", "friedman", "additive_steps", "share", "piston-small", "swirl-small")


@dataclass(frozen=True)
class PolicyCell:
    """A case, with a number that is multiplied; none for all as they are."""

    key: str
    name: str
    factor: float
    case: str
    seed: int


def scaled(value: Any, factor: float) -> Any:
    """Multiply a number, or all within tuples and dictionaries; whole ones stay whole."""
    if isinstance(value, dict):
        return {key: scaled(each, factor) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    if isinstance(value, int):
        return max(1, round(factor * value))
    return None if value is None else factor * value


def run_cell(cell: PolicyCell, checkpoint_directory: str = "") -> dict[str, Any]:
    """Fit and score with the number as it is told."""
    X, y, T, t = load(cell.case, cell.seed)
    is_exact = cell.case.rpartition("-")[0] in EMULATORS or PROBLEMS.get(cell.case, "")[2:] == (
        0.0,
    )
    warnings.simplefilter("ignore")
    value = getattr(policy, cell.name, None)
    if cell.name:
        setattr(policy, cell.name, scaled(value, cell.factor))
    try:
        began = time.process_time()
        likelihood = "noise_free" if is_exact else "auto"
        model = DeepWishartRegressor(likelihood=likelihood, random_state=cell.seed).fit(X, y)
        seconds = time.process_time() - began
    finally:
        if cell.name:
            setattr(policy, cell.name, value)
    inputs = model.input_standardiser_.transform(T)
    posterior = model.model_.posterior()
    predicted = PredictiveDistribution.of(posterior, inputs, model.output_standardiser_)
    return {
        "crps": float(predicted.crps(t[:, None]).mean()),
        "chosen": [
            len(model.model_.layers),
            kernel_name(model.model_.layers[0].kernel),
            name_of_likelihood(model.model_.likelihood),
        ],
        "cpu_seconds": seconds,
    }


@app.command
def run(
    *,
    out: Path,
    names: tuple[str, ...] = NAMES,
    cases: tuple[str, ...] = CASES,
    seeds: tuple[int, ...] = (10,),
    jobs: int | None = None,
) -> int:
    """Run what is missing.

    :param jobs: Cells at a time (default: one a processor).
    """
    changes = [("", 1.0), *itertools.product(names, (0.5, 2.0))]
    cells = [
        PolicyCell(f"{name}, {factor}, {case}, {seed}", name, factor, case, seed)
        for (name, factor), case, seed in itertools.product(changes, cases, seeds)
    ]
    return int(any("failure" in line for line in run_cells(cells, out, run_cell, jobs=jobs)))


@app.command
def report(folder: Path, /) -> int:
    """Print which cases each number moves."""
    lines = [line for line in read_lines(folder / "results.jsonl") if "failure" not in line]
    usual = {(line["case"], line["seed"]): line for line in lines if not line["name"]}
    moved: dict[str, list[str]] = {line["name"]: [] for line in lines if line["name"]}
    for line in lines:
        before = usual.get((line["case"], line["seed"]))
        if not line["name"] or before is None:
            continue
        ratio = line["crps"] / before["crps"]
        if line["chosen"] != before["chosen"] or abs(ratio - 1.0) > 0.01:
            moved[line["name"]].append(f"{line['case']} x{line['factor']:g} ({ratio:.2f})")
    for name, cases in moved.items():
        print(f"{name:22s}{', '.join(cases) or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(app())
