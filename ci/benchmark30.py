"""The benchmark of emulators of Rumsey et al. (2025): sixty functions, ours beside 28 in print.

    python ci/benchmark30.py run --out sixty [--functions borehole --num-runs 500 --noise 0]
    python ci/benchmark30.py report sixty

A cell is a method on a Latin hypercube of runs (drawn at random: those in print are maximin up to
1,200), scored on 1,000 other points by the function without noise. Noise is a ratio of variances.
CRPS is divided by the printed deviation, FVU by the variance of function and noise, as in print.
Scores are of the function's predictive, without noise or nugget; ``observed_crps`` has them, as
have most Gaussian processes in print: with a ratio of 0.1 theirs cannot be below 0.074. Designs 0
to 2 are for claims, others from 10 on. ``ci/results/sixty`` has what has been run, and goes on.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cases.sixty import FUNCTIONS, SIXTY, Array
from cyclopts import App, Parameter
from emulators import crps_of_mixture, dgpsi
from matplotlib.figure import Figure
from robust_gasp import robust_gasp
from scipy.stats import qmc
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from study import numbers, read_lines, run_cells

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.likelihoods.warped_gaussian import unwarped_moments, warp_of

app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))
PRINTED = Path(__file__).parent / "results" / "emulators_printed.csv"
_SPREAD_OF_CONSTANTS = 1.3154e-7  # what their CRPS is divided by in print
_SHOWN = [
    *("crps", "observed_crps", "median_crps", "upper_crps", "fvu", "coverage", "cpu_seconds"),
]
_LEVEL = 1e-3  # up to which values of print are level
# Components of the function's predictive, means and variances [S, N], the variance [N] that
# observations have above them, and what else is told.
Prediction = tuple[Array, Array, Any, dict[str, Any]]


def load(function: str, num_runs: int, noise: float, design: int) -> tuple[Array, ...]:
    """Runs X [N, D], y [N] with noise, and test points T [1000, D] with values t without."""
    f, seeds = FUNCTIONS[function], [design, num_runs, zlib.crc32(function.encode())]
    rng = np.random.default_rng(seeds)
    X, T = (qmc.LatinHypercube(f.num_inputs, seed=rng).random(n) for n in (num_runs, 1000))
    y = f(X)
    spread = y.std(ddof=1) or 1e-6
    return X, y + np.sqrt(noise) * spread * rng.standard_normal(num_runs), T, f(T)


def ours(X: Array, y: Array, T: Array, seed: int, noise: float) -> Prediction:
    """This package's default, told where there is no noise; constants it refuses."""
    if np.ptp(y) == 0.0:
        return np.full((1, len(T)), y[0]), np.zeros((1, len(T))), 0.0, {}
    settings = {} if noise else {"likelihood": "noise_free"}
    emulator = DeepWishartRegressor(random_state=seed, **settings).fit(X, y)
    units, standardiser = emulator._raw_units(), emulator.output_standardiser_
    parts = emulator._posterior().predict_f_components(units.to_model(T))
    warp = warp_of(emulator.model_.likelihood)
    parts = parts if warp is None else unwarped_moments(warp, *parts)
    means, variances = (
        np.asarray(part)[:, :, 0] * standardiser.scale[0] ** k for k, part in enumerate(parts, 1)
    )
    of_function, of_runs = (
        emulator.predict(T, return_std=True, include_noise=each)[1] ** 2 for each in (False, True)
    )
    depth, kernel = len(emulator.model_.layers), type(emulator.model_.layers[0].kernel).__name__
    told = {"depth": depth, "kernel": kernel, "reason": emulator.reason_}
    return means + standardiser.mean[0], variances, of_runs - of_function, told


def exact_process(X: Array, y: Array, T: Array, seed: int, noise: float) -> Prediction:
    """scikit-learn's, with white noise and a restart."""
    rbf = kernels.RBF(np.full(X.shape[1], np.sqrt(X.shape[1])), (1e-2, 1e3))
    white = kernels.WhiteKernel(max(noise, 1e-6), (1e-10, 1.0))
    process = GaussianProcessRegressor(
        kernels.ConstantKernel(1.0, (1e-4, 1e8)) * rbf + white,
        n_restarts_optimizer=1,
        normalize_y=True,
        random_state=seed,
    )
    mean, deviation = process.fit(X, y).predict(T, return_std=True)
    variance = process.kernel_.k2.noise_level * process._y_train_std**2
    return mean[None], np.maximum(deviation**2 - variance, 0.0)[None], variance, {}


def run_robust_gasp(X: Array, y: Array, T: Array, seed: int, _: float) -> Prediction:
    """RobustGaSP's method, rgasp in print: whether its scores are those says if designs compare."""
    mean, variance, nugget = robust_gasp(X, y, T, seed)
    return mean[None], variance[None], nugget, {}


def run_dgpsi(X: Array, y: Array, T: Array, seed: int, _: float, depth: int = 1) -> Prediction:
    """dgpsi's processes of runs without noise, from the study of emulators."""
    (means, variances), told = dgpsi(X, y, T, seed, depth=depth)
    return means.reshape(1, -1), variances.reshape(1, -1), 0.0, told


METHODS: dict[str, Callable[..., Prediction]] = {
    "ours": ours,
    "robust-gasp": run_robust_gasp,
    "scikit-learn": exact_process,
    "dgpsi-gp": run_dgpsi,
    "dgpsi-dgp": partial(run_dgpsi, depth=2),
}


@dataclass(frozen=True)
class BenchmarkCell:
    """A method on a function's design, which is also the seed."""

    key: str
    function: str
    method: str
    num_runs: int
    noise: float
    design: int


def run_cell(cell: BenchmarkCell, checkpoint_directory: str = "") -> dict[str, Any]:
    """Fit, predict and score; ``cpu_seconds`` are of fit and prediction."""
    X, y, T, t = load(cell.function, cell.num_runs, cell.noise, cell.design)
    warnings.simplefilter("ignore")
    start = time.process_time()
    predicted = METHODS[cell.method](X, y, T, cell.design, cell.noise)
    seconds = time.process_time() - start
    deviation = SIXTY[cell.function].deviation
    return {**scores(predicted, t, deviation, cell.noise), "cpu_seconds": seconds}


def scores(predicted: Prediction, t: Array, deviation: float, noise: float) -> dict[str, Any]:
    """Score a prediction by the function's values t [N] without noise."""
    means, variances, extra, told = predicted
    mean = means.mean(0)
    error, half = t - mean, 1.96 * np.sqrt(np.mean(variances + (means - mean) ** 2, axis=0))
    unit = deviation or _SPREAD_OF_CONSTANTS
    crps, observed = (
        crps_of_mixture(means[..., None], (variances + more)[..., None], t[:, None])[:, 0] / unit
        for more in (0.0, extra)
    )
    return told | {
        "crps": float(crps.mean()),
        "median_crps": float(np.median(crps)),
        "upper_crps": float(np.quantile(crps, 0.75)),
        "fvu": float(np.mean(error**2) / ((deviation or 1e-6) ** 2 * (1.0 + noise))),
        "coverage": float(np.mean(np.abs(error) <= half)),
        "observed_crps": float(observed.mean()),
    }


@app.command
def run(
    *,
    out: Path,
    functions: tuple[str, ...] = tuple(SIXTY),
    methods: tuple[str, ...] = tuple(METHODS),
    num_runs: tuple[int, ...] = (1_000, 500, 5_000),
    noise: tuple[float, ...] = (0.0, 0.1),
    designs: tuple[str, ...] = ("0-2",),
    jobs: int | None = None,
) -> int:
    """Run what is missing: every method, function, number of runs, noise and design.

    :param designs: Numbers, such as 0-2; of 5,000 runs the first only.
    :param jobs: Cells at a time (default: one a processor).
    """
    cells = [
        BenchmarkCell(f"{f}, {method}, {n}, {ratio}, {design}", f, method, n, ratio, design)
        for design, n, ratio, f, method in itertools.product(
            numbers(designs), num_runs, noise, functions, methods
        )
        if (n <= 1_000 or (method == "ours" and design == numbers(designs)[0]))
        and (not method.startswith("dgpsi") or (find_spec("dgpsi") is not None and not ratio))
    ]
    return int(any("failure" in line for line in run_cells(cells, out, run_cell, jobs=jobs)))


def beside_print(lines: Iterable[Mapping[str, Any]], num_runs: int, noise: float) -> pd.DataFrame:
    """Mean CRPS by function: our methods, and printed emulators if print has such runs."""
    tables = [
        frame[(frame["num_runs"] == num_runs) & (frame["noise"] == noise)]
        for frame in (pd.DataFrame(list(lines)), pd.read_csv(PRINTED))
    ]
    printed = tables[1].set_index("function").drop(columns=["num_runs", "noise"])
    here = tables[0].pivot_table("crps", "function", "method")
    return here.join(printed.dropna(axis=1, how="all"))


def ranks(table: pd.DataFrame, ties: str = "min") -> pd.DataFrame:
    """Rank printed emulators and "ours" on each function; level ones have the best of theirs."""
    among = table.drop(columns={*METHODS} - {"ours"}, errors="ignore")
    return among.clip(lower=_LEVEL).rank(axis=1, method=ties)


def _listed(order: pd.Series) -> str:
    return ", ".join(f"{name} {place:.2f}" for name, place in order.items())


@app.command
def report(folder: Path, /) -> None:
    """Write report.md, a table for each number of runs and noise, and figures beside it."""
    lines = [line for line in read_lines(folder / "results.jsonl") if "failure" not in line]
    text = []
    for (n, noise), block in pd.DataFrame(lines).groupby(["num_runs", "noise"]):
        text.append(f"## {n:,} runs, noise-to-signal ratio {noise:g}")
        table, mine = beside_print(lines, n, noise), block[block["method"] == "ours"]
        shown = mine.groupby("function")[_SHOWN].mean()
        if "ours" in table and {*table} - {*METHODS}:
            places, printed = ranks(table), table.drop(columns=[*METHODS], errors="ignore")
            order = places.mean().sort_values()
            text.append(f"Mean ranks over {len(places)} functions: {_listed(order)}.")
            shared = _listed(ranks(table, "average").mean().sort_values())
            text.append(f"Where level ones share the mean of their ranks, as in print: {shared}.")
            noisy = ranks(printed.assign(ours=shown["observed_crps"]))["ours"].mean()
            text.append(f"That of ours with noise in its predictive, too: {noisy:.2f}.")
            shown["rank"] = places["ours"]
            shown["best"], shown["of"] = printed.min(axis=1), printed.idxmin(axis=1)
            heat_map(table[order.index]).savefig(folder / f"{n}-{noise:g}.png")
            bars(order).savefig(folder / f"{n}-{noise:g}-ranks.png", dpi=150)
        if block["method"].nunique() > 1:
            front(block).savefig(folder / f"{n}-{noise:g}-seconds.png", dpi=150)
        others = table[[name for name in METHODS if name in table and name != "ours"]]
        text.append(shown.join(others, how="outer").to_markdown(floatfmt=".4g"))
    (folder / "report.md").write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


def bars(order: pd.Series) -> Figure:
    """Draw mean ranks, the best first."""
    figure = Figure((7.0, 2.6), layout="constrained")
    ax = figure.subplots()
    colours = ["C1" if name == "ours" else "C0" for name in order.index]
    ax.bar(range(len(order)), order, color=colours)
    ax.set_xticks(range(len(order)), order.index, rotation=90)
    ax.set_ylabel("mean rank by CRPS")
    return figure


def front(lines: pd.DataFrame) -> Figure:
    """Draw CRPS against CPU seconds of the methods that were run here, over what all have run."""
    shared = lines.pivot_table(["crps", "cpu_seconds"], ["function", "design"], "method").dropna()
    crps = np.exp(np.log(shared["crps"].clip(lower=_LEVEL)).mean())
    seconds = shared["cpu_seconds"].quantile([0.25, 0.5, 0.75])
    figure = Figure((5.0, 3.2), layout="constrained")
    ax = figure.subplots()
    for method, value in crps.items():
        low, middle, high = seconds[method]
        ax.errorbar(middle, value, xerr=[[middle - low], [high - middle]], fmt="o", label=method)
    ax.set(xscale="log", yscale="log", xlabel="CPU seconds: median and quartiles")
    ax.set_ylabel("geometric mean of CRPS / deviation")
    ax.legend(frameon=False)
    return figure


def heat_map(table: pd.DataFrame) -> Figure:
    """Draw CRPS [functions, emulators] by colour, in the order of the columns."""
    figure = Figure((3 + 0.3 * table.shape[1], 2 + 0.2 * len(table)), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(np.log10(table.clip(lower=_LEVEL)), aspect="auto", cmap="viridis", vmax=0)
    ax.set_xticks(range(table.shape[1]), table.columns, rotation=90)
    ax.set_yticks(range(len(table)), table.index)
    figure.colorbar(image, label="log10 of mean CRPS / deviation")
    return figure


if __name__ == "__main__":
    sys.exit(app())
