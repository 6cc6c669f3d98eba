"""How good emulators of simulators without noise are: ours beside Gaussian processes and dgpsi.

    python ci/emulators.py --out results.jsonl [--seeds 0 1 2] [METHOD ...]
    python ci/emulators.py --out ci/results/chains.jsonl --seeds 10 11 12 --chains [METHOD ...]

Small designs of ``ci/cases`` are run; ``ignition-large`` has 1,000 runs, and ``--functions
borehole-levels beam-levels waves-levels`` have a category, as indicators. Methods: "ours" (the
default with ``likelihood="noise_free"``), "single" (with ``effort="quick"``), "matern52" (that
kernel alone, for which indicators are numbers), "gp" (scikit-learn's exact process, ten restarts),
"dgpsi-gp" and "dgpsi-dgp" (of an environment that has dgpsi, and where nothing of this package is
needed). Rows are added to the file, one for each function, seed and method, and what is there is
not run again.

CPU seconds are of fit and prediction, in one thread; those of dgpsi's compilation, which a fit of
five points before does, are apart. Set ``OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1
TF_NUM_INTEROP_THREADS=1 NUMBA_NUM_THREADS=1``. ``--summary`` prints means over seeds.

``--chains`` runs chains of single layers instead: "linked" (two simulators, one of the other's
output), "fidelities" (Currin's function, 30 coarse runs and 8 fine ones) and "field" (series of 100
numbers). Methods: "chain" (``ChainedEmulator``) and "alone" (one emulator of the whole: of runs of
both, of the fine runs, of all outputs jointly).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases.designs import load
from scipy.special import ndtr
from scipy.stats import qmc

FUNCTIONS = (
    *("jump", "booth", "swirl", "ishigami", "otl_circuit", "piston", "borehole", "robot_arm"),
    *("ignition", "lotka_volterra"),
)
# Means and variances of the components of a mixture of normals, [S, N, Q] each.
Prediction = tuple[np.ndarray, np.ndarray]


def crps_of_mixture(means: np.ndarray, variances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """CRPS of mixtures of normals in closed form (Grimit et al., 2006), [N, Q]."""

    def expected_distance(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        deviation = np.sqrt(np.maximum(variance, 1e-300))
        z = mean / deviation
        density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        return mean * (2.0 * ndtr(z) - 1.0) + 2.0 * deviation * density

    scores = expected_distance(y - means, variances).mean(0)
    for mean, variance in zip(means, variances, strict=True):
        scores -= 0.5 * expected_distance(mean - means, variance + variances).mean(0) / len(means)
    return scores


def scores(prediction: Prediction, y: np.ndarray) -> dict[str, float]:
    """Scores, of several outputs the means; "sd" is that of the test set."""
    means, variances = (np.asarray(part).reshape(len(part), len(y), -1) for part in prediction)
    y = y.reshape(len(y), -1)
    scale = np.maximum(y.std(0), 1e-300)
    mean = means.mean(0)
    deviation = np.sqrt(np.mean(variances + (means - mean) ** 2, axis=0))
    crps = crps_of_mixture(means, variances, y) / scale
    error = (y - mean) / scale
    return {
        "rmse_sd": float(np.sqrt(np.mean(error**2))),
        "fvu": float(np.mean(error**2)),
        "crps_sd": float(crps.mean()),
        "median_crps_sd": float(np.median(crps)),
        "coverage": float(np.mean(np.abs(y - mean) <= 1.96 * deviation)),
    }


def ours(X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int, **settings: Any) -> Any:
    """This package's regressor."""
    from gpflow_dwp.estimator import DeepWishartRegressor

    settings = {"likelihood": "noise_free", "random_state": seed, **settings}
    emulator = DeepWishartRegressor(**settings).fit(X, y)
    distribution = emulator._raw_units().distribution(emulator._posterior(), T)
    scale, mean = emulator.output_standardiser_.scale, emulator.output_standardiser_.mean
    chosen = {"depth": len(emulator.model_.layers), "reason": emulator.reason_}
    if distribution.warp is not None:  # of which draws are no normals
        return (distribution.mean()[None], distribution.variance()[None]), chosen
    return (distribution.means * scale + mean, distribution.variances * scale**2), chosen


def exact_process(X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int) -> Any:
    """scikit-learn's exact process of each output, ten restarts, with a nugget of 1e-8."""
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    means, variances = [], []
    for column in y.reshape(len(y), -1).T:
        kernel = kernels.ConstantKernel(1.0, (1e-4, 1e5)) * kernels.RBF(
            np.ones(X.shape[1]), (1e-2, 1e3)
        )
        process = GaussianProcessRegressor(
            kernel, alpha=1e-8, n_restarts_optimizer=10, normalize_y=True, random_state=seed
        )
        mean, std = process.fit(X, column).predict(T, return_std=True)
        means.append(mean)
        variances.append(np.maximum(std, 1e-9 * column.std()) ** 2)
    return (np.stack(means, -1)[None], np.stack(variances, -1)[None]), {}


def dgpsi(X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int, *, depth: int) -> Any:
    """dgpsi's Gaussian process, or its deep one by stochastic imputation with its defaults."""
    import dgpsi as library

    mean, scale = y.mean(), y.std()
    Y = ((y - mean) / scale)[:, None]
    library.nb_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    D = X.shape[1]
    if depth == 1:
        process = library.gp(X, Y, library.kernel(np.ones(D), name="matern2.5", scale_est=True))
        process.train()
        mu, variance = process.predict(T)
        means, variances = mu[None], variance[None]
    else:
        first = [library.kernel(np.array([1.0]), name="matern2.5") for _ in range(D)]
        last = [
            library.kernel(np.array([1.0]), name="matern2.5", scale_est=True, connect=np.arange(D))
        ]
        deep = library.dgp(X, [Y], library.combine(first, last))
        deep.train(N=500, disable=True)
        emulator = library.emulator(deep.estimate(), N=50)
        mu, variance = emulator.predict(T, method="mean_var")
        means, variances = mu[None], variance[None]
    return (means * scale + mean, variances * scale**2), {}


METHODS: dict[str, Callable[..., Any]] = {
    "ours": ours,
    "single": lambda *given: ours(*given, effort="quick"),
    "matern52": lambda *given: ours(*given, effort="quick", kernel="Matern52"),
    "gp": exact_process,
    "dgpsi-gp": lambda *given: dgpsi(*given, depth=1),
    "dgpsi-dgp": lambda *given: dgpsi(*given, depth=2),
}


def linked(seed: int, emulate: Callable[..., Any], *, chain: bool) -> Any:
    """A simulator of another one's output, each with 12 runs of its own."""
    from gpflow_dwp.estimator import ChainedEmulator

    def first(x: np.ndarray) -> np.ndarray:
        return np.sin(7.0 * x[:, 0]) + 0.5 * x[:, 1]

    def second(w: np.ndarray) -> np.ndarray:
        return np.cos(3.0 * w[:, 0]) * np.exp(0.5 * w[:, 0])

    X, T = latin(2, 12, seed), latin(2, 500, 1_000 + seed)
    truth = second(first(T)[:, None])
    if not chain:
        return emulate(X, second(first(X)[:, None])), T, truth
    W = 3.5 * latin(1, 12, seed) - 1.5
    return ChainedEmulator([emulate(X, first(X)), emulate(W, second(W))]), T, truth


def fidelities(seed: int, emulate: Callable[..., Any], *, chain: bool) -> Any:
    """Currin's function, and the coarse version of Xiong, Qian and Wu (2013)."""
    from gpflow_dwp.estimator import ChainedEmulator

    def fine(x: np.ndarray) -> np.ndarray:
        a, b = x.T
        ratio = (2300 * a**3 + 1900 * a**2 + 2092 * a + 60) / (100 * a**3 + 500 * a**2 + 4 * a + 20)
        return (1.0 - np.exp(-0.5 / np.maximum(b, 1e-9))) * ratio

    def coarse(x: np.ndarray) -> np.ndarray:
        low = np.maximum(x[:, 1] - 0.05, 0.0)
        at = [np.stack([x[:, 0] + s, b], 1) for s in (0.05, -0.05) for b in (x[:, 1] + 0.05, low)]
        return np.mean([fine(each) for each in at], axis=0)

    few, many, T = latin(2, 8, seed), latin(2, 30, 500 + seed), latin(2, 500, 1_000 + seed)
    if not chain:
        return emulate(few, fine(few)), T, fine(T)
    regressor = emulate(None, None)
    runs = [(many, coarse(many)), (few, fine(few))]
    return ChainedEmulator.coarse_to_fine(runs, regressor), T, fine(T)


def field(seed: int, emulate: Callable[..., Any], *, chain: bool) -> Any:
    """A wave of 100 numbers, whose height and phase depend on two inputs."""
    from gpflow_dwp.estimator import ChainedEmulator

    def wave(x: np.ndarray) -> np.ndarray:
        times = np.linspace(0.0, 6.0, 100)
        return (1.0 + x[:, :1] ** 2) * np.sin(times + 3.0 * x[:, 1:] * x[:, :1])

    X, T = latin(2, 25, seed), latin(2, 300, 1_000 + seed)
    if not chain:
        return emulate(X, wave(X)), T, wave(T)
    return ChainedEmulator.of_field(X, wave(X), emulate(None, None)), T, wave(T)


CHAINS = {"linked": linked, "fidelities": fidelities, "field": field}


def latin(size: int, count: int, seed: int) -> np.ndarray:
    """A Latin hypercube of the unit cube, [count, size]."""
    return qmc.LatinHypercube(size, rng=seed).random(count)


def run_chain(function: str, seed: int, method: str) -> tuple[Prediction, np.ndarray]:
    """What a chain, or one emulator, predicts of new inputs, and the truth there."""
    from gpflow_dwp.estimator import DeepWishartRegressor

    def emulate(X: np.ndarray | None, y: np.ndarray | None) -> Any:
        regressor = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=seed)
        return regressor if X is None else regressor.fit(X, y)

    emulator, T, truth = CHAINS[function](seed, emulate, chain=method == "chain")
    mean, std = emulator.predict(T, return_std=True)
    return (mean[None], np.square(std)[None]), truth


def main() -> None:
    """Run what is not there yet, or print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", metavar="METHOD")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--functions", nargs="+")
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    methods = given.methods or (["chain", "alone"] if given.chains else ["ours", "single", "gp"])
    functions = given.functions or (CHAINS if given.chains else FUNCTIONS)
    rows = []
    if given.out.exists():
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    if given.summary:
        summarise(rows)
        return
    done = {(row["function"], row["seed"], row["method"]) for row in rows}
    warnings.simplefilter("ignore")
    compiled: set[str] = set()
    for seed, method, function in itertools.product(given.seeds, methods, functions):
        name, _, size = function.partition("-")
        of_dgpsi = method.startswith("dgpsi")
        if (function, seed, method) in done or (of_dgpsi and name == "lotka_volterra"):
            continue
        if of_dgpsi and method not in compiled:
            x = np.linspace(0.0, 1.0, 5)[:, None]
            METHODS[method](x, np.sin(x[:, 0]), x, 0)
            compiled.add(method)
        if not given.chains:
            X, y, T, t = load(f"{name}-{size or 'small'}", seed)
            if y.ndim > 1:  # outputs that are the same in all runs are no work for an emulator
                varies = y.std(0) > 1e-9 * np.abs(y).max(0)
                y, t = y[:, varies], t[:, varies]
        began = time.process_time()
        row = {"function": function, "seed": seed, "method": method}
        try:
            if given.chains:
                (prediction, t), more = run_chain(function, seed, method), {}
            else:
                prediction, more = METHODS[method](X, y, T, seed)
            seconds = time.process_time() - began
            row |= {**scores(prediction, t), **more, "cpu_s": seconds}
        except Exception as error:  # told in the file, and the others go on
            row["error"] = f"{type(error).__name__}: {error}"[:200]
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


def summarise(rows: list[dict[str, Any]]) -> None:
    """Print means over seeds."""
    methods = sorted({row["method"] for row in rows})
    for function in dict.fromkeys(row["function"] for row in rows):
        for method in methods:
            found = [r for r in rows if (r["function"], r["method"]) == (function, method)]
            found = [row for row in found if "crps_sd" in row]
            if found:
                parts = [
                    f"{name} {np.mean([row[name] for row in found]):.4g}"
                    for name in ("crps_sd", "median_crps_sd", "fvu", "coverage", "cpu_s")
                ]
                depths = [str(row["depth"]) for row in found if "depth" in row]
                print(f"{function:15} {method:10} {len(found)}", *parts, "depth", *depths)


if __name__ == "__main__":
    main()
