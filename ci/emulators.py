"""How good emulators of simulators without noise are: ours beside Gaussian processes and dgpsi.

    python ci/emulators.py --out results.jsonl [--seeds 0 1 2] [METHOD ...]

Small designs of ``ci/cases`` are run; ``ignition-large`` has 1,000 runs. Methods: "ours" (the
default with ``likelihood="noise_free"``), "single" (with ``effort="quick"``), "gp" (scikit-learn's
exact process, ten restarts), "dgpsi-gp" and "dgpsi-dgp" (of an environment that has dgpsi, and
where nothing of this package is needed). Rows are added to the file, one for each function, seed
and method, and what is there is not run again.

CPU seconds are of fit and prediction, in one thread; those of dgpsi's compilation, which a fit of
five points before does, are apart. Set ``OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1
TF_NUM_INTEROP_THREADS=1 NUMBA_NUM_THREADS=1``. ``--summary`` prints means over seeds.
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
    "gp": exact_process,
    "dgpsi-gp": lambda *given: dgpsi(*given, depth=1),
    "dgpsi-dgp": lambda *given: dgpsi(*given, depth=2),
}


def main() -> None:
    """Run what is not there yet, or print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=["ours", "single", "gp"], metavar="METHOD")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    rows = []
    if given.out.exists():
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    if given.summary:
        summarise(rows)
        return
    done = {(row["function"], row["seed"], row["method"]) for row in rows}
    warnings.simplefilter("ignore")
    compiled: set[str] = set()
    for seed, method, function in itertools.product(given.seeds, given.methods, given.functions):
        name, _, size = function.partition("-")
        of_dgpsi = method.startswith("dgpsi")
        if (function, seed, method) in done or (of_dgpsi and name == "lotka_volterra"):
            continue
        if of_dgpsi and method not in compiled:
            x = np.linspace(0.0, 1.0, 5)[:, None]
            METHODS[method](x, np.sin(x[:, 0]), x, 0)
            compiled.add(method)
        X, y, T, t = load(f"{name}-{size or 'small'}", seed)
        if y.ndim > 1:  # outputs that are the same in all runs are no work for an emulator
            varies = y.std(0) > 1e-9 * np.abs(y).max(0)
            y, t = y[:, varies], t[:, varies]
        began = time.process_time()
        row = {"function": function, "seed": seed, "method": method}
        try:
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
