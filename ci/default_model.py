"""How good the default model is: on problems made here or elsewhere, and on UCI's tables.

    python ci/default_model.py --cases FOLDER --uci FOLDER --out results.jsonl [NAME ...]

A folder of cases holds ``problems.py`` with ``PROBLEMS`` (name: a function of a seed that returns
X, y and a test set) and ``emulators.py`` with ``load(name, seed, large)``. Emulators are named as
``swirl-small`` or ``swirl-large``, UCI's tables as ``uci-yacht``, whose seed is the split, and as
``rows-20000`` so many rows of eight inputs of a smooth function with noise are drawn. Each
problem and seed is run by scikit-learn's exact process, by a single layer and by the default; rows
are added to the file, and what is there is not run again. Without names all are run.

CPU seconds are of this process: start it with one thread (``TF_NUM_INTRAOP_THREADS=1
TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1``). ``--summary`` prints means over seeds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.preprocessing import StandardScaler
from uci.splits import load_uci

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods.named import name_of_likelihood
from gpflow_dwp.selection import recorded_steps

UCI = ("yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein")
EMULATORS = ("swirl-large", "ignition-small", "ignition-large", "jump-small", "booth-small")
LEVELS = (np.arange(100) + 0.5) / 100
MOST_ROWS_OF_AN_EXACT_PROCESS = 1_500

Predict = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def scores(
    y: np.ndarray, mean: np.ndarray, quantiles: np.ndarray, log_density: np.ndarray
) -> dict[str, float]:
    """RMSE, CRPS by a hundred quantiles, NLPD and coverage of 90% intervals."""
    below = y[:, None] < quantiles
    crps = 2.0 * np.where(below, 1.0 - LEVELS, LEVELS) * np.abs(quantiles - y[:, None])
    inside = (y >= quantiles[:, 4]) & (y <= quantiles[:, 95])
    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "crps": float(crps.mean()),
        "median_crps": float(np.median(crps.mean(1))),
        "nlpd": -float(log_density.mean()),
        "nlpd_error": float(log_density.std() / np.sqrt(len(y))),
        "coverage": float(inside.mean()),
    }


def run_exact_process(X, y, T, t, step, seed) -> dict[str, Any]:
    """scikit-learn's exact process with white noise and a restart, standardised."""
    rows = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS_OF_AN_EXACT_PROCESS]
    inputs, outputs = StandardScaler().fit(X[rows]), StandardScaler().fit(y[rows, None])
    kernel = kernels.ConstantKernel() * kernels.RBF(np.ones(X.shape[1])) + kernels.WhiteKernel()
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=seed)
    process.fit(inputs.transform(X[rows]), outputs.transform(y[rows, None])[:, 0])
    mean, std = process.predict(inputs.transform(T), return_std=True)
    mean, std = outputs.inverse_transform(mean[:, None])[:, 0], std * outputs.scale_[0]
    std = np.maximum(std, 1e-9 * outputs.scale_[0])
    quantiles = mean[:, None] + std[:, None] * ndtri(LEVELS)
    normal = PredictiveDistribution(mean[None, :, None], std[None, :, None] ** 2)
    return scores(t, mean, quantiles, normal.log_density(t[:, None], step)[:, 0])


def run_ours(X, y, T, t, step, seed, **settings) -> dict[str, Any]:
    """An estimator, with what it chose."""
    model = DeepWishartRegressor(random_state=seed, **settings).fit(X, y)
    mean, std = model.predict(T, return_std=True)
    quantiles = model.predict_quantiles(T, LEVELS)
    found = scores(t, mean, quantiles, model.predict_log_density(T, t, step))
    low, high = y.min(), y.max()
    reach = 2.0 * (high - low)
    sane = all(
        np.isfinite(part).all() and part.min() >= low - reach and part.max() <= high + reach
        for part in (mean, quantiles)
    )
    first = model.model_.layers[0]
    return {
        **found,
        "sane": bool(sane and np.isfinite(std).all() and std.max() <= reach),
        "depth": len(model.model_.layers),
        "likelihood": name_of_likelihood(model.model_.likelihood),
        "kernel": type(first.kernel).__name__,
        "reason": model.reason_,
        "candidates": [
            [*c[:7], c.loo and list(c.loo), round(c.seconds, 2)] for c in model.candidates_
        ],
    }


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    "exact": run_exact_process,
    "depth 1": lambda *data: run_ours(*data, depth=1),
    "default": run_ours,
    "quick": lambda *data: run_ours(*data, effort="quick"),
    "thorough": lambda *data: run_ours(*data, effort="thorough"),
    "minibatches": lambda *data: run_ours(
        *data, depth=2, kernel="SquaredExponential", likelihood="gaussian", batch_size=1_000
    ),
}


def load(name: str, seed: int, uci: Path | None):
    """Training and test rows of a problem."""
    if name.startswith("uci-"):
        split = load_uci(name.removeprefix("uci-"), seed, folder=uci)
        return split.X_train, split.Y_train[:, 0], split.X_test, split.Y_test[:, 0]
    if name.startswith("rows-"):
        num_data, rng = int(name.removeprefix("rows-")), np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (num_data + 500, 8))
        y = np.sin(3.0 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + 0.5 * X[:, 3]
        y += 0.1 * rng.standard_normal(len(y))
        return X[:num_data], y[:num_data], X[num_data:], y[num_data:]
    if name.endswith(("-small", "-large")):
        which, _, size = name.rpartition("-")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("emulators").load(which, seed, large=size == "large")
    return importlib.import_module("problems").PROBLEMS[name](seed)


def summary(path: Path) -> None:
    """Print means over seeds."""
    table = pd.read_json(path, lines=True)
    columns = ["rmse", "crps", "median_crps", "nlpd", "coverage", "cpu_seconds", "depth"]
    means = table.groupby(["name", "method"], sort=False)[columns].mean()
    means["worst_nlpd"] = table.groupby(["name", "method"], sort=False)["nlpd"].max()
    means["crps/sd"] = (
        table.assign(r=table.crps / table.deviation).groupby(["name", "method"]).r.mean()
    )
    means["sane"] = table.groupby(["name", "method"], sort=False)["sane"].min()
    with pd.option_context("display.width", 200, "display.max_rows", None):
        print(means.to_string(float_format=lambda value: f"{value:.4g}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=["exact", "depth 1", "default"])
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.out)
        return
    names = arguments.names
    if arguments.cases is not None:
        sys.path.insert(0, str(arguments.cases))
        names = names or [*importlib.import_module("problems").PROBLEMS, *EMULATORS]
    if not arguments.names and arguments.uci is not None:
        names = [*names, *(f"uci-{table}" for table in UCI)]
    done = set()
    if arguments.out.exists():
        done = {
            tuple(json.loads(line)[k] for k in ("name", "seed", "method"))
            for line in arguments.out.open()
        }
    warnings.simplefilter("ignore")
    for seed in arguments.seeds:
        for name in names:
            if name.startswith("uci-") and seed > 1:
                continue
            X, y, T, t = load(name, seed, arguments.uci)
            step = recorded_steps(y[:, None])
            for method in arguments.methods:
                if (name, seed, method) in done:
                    continue
                began = time.process_time()
                found = METHODS[method](X, y, T, t, step, seed)
                row = {"name": name, "seed": seed, "method": method, **found}
                row |= {"deviation": float(t.std()), "num_data": len(X)}
                row["cpu_seconds"] = time.process_time() - began
                row["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
                with arguments.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                shown = {k: v for k, v in row.items() if k != "candidates"}
                print(
                    " ".join(
                        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}"
                        for k, v in shown.items()
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
