"""What is done with emulators: from an observation to the inputs, and noisy simulators.

    python ci/workflows.py --out ci/results/workflows.jsonl [waves noise replicates] [--seeds 10 11]

"waves" is history matching of an oscillation that dies away, seen at five times: four inputs, a
Latin hypercube of 40 runs, and two waves of 20 more among what is left. Told are the share of all
inputs that is left after each, what the simulator itself would leave, whether the inputs that made
the observation are kept, and how many of the four 90% intervals of the posterior hold. "noise" is a
function of two inputs whose noise is five times as large at one end, 40 inputs run five times each,
with noise that varies and without. "replicates" is one of five inputs, 100 of which are run once,
ten and a hundred times.

Rows are added to the file, and what is there is not run again; all ours are single layers.
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
import tensorflow_probability as tfp
from emulators import latin, scores

from gpflow_dwp import emulation
from gpflow_dwp.estimator import DeepWishartRegressor

TIMES = np.linspace(0.4, 4.0, 5)
ERROR = 0.02
CUTOFF = 3.5  # of the largest of five outputs
BOUNDS = np.tile([0.0, 1.0], (4, 1))


def oscillation(x: np.ndarray) -> np.ndarray:
    """Height, decay, frequency and phase, to five outputs."""
    height, decay, frequency, phase = (x[:, [column]] for column in range(4))
    waves = np.cos((1.0 + 2.0 * frequency) * TIMES + 2.0 * phase)
    return (0.5 + height) * np.exp(-decay * TIMES) * waves


def run_waves(seed: int) -> dict[str, Any]:
    """Three waves, and the posterior of the last emulator."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.2, 0.8, 4)
    z = oscillation(truth[None])[0] + ERROR * rng.standard_normal(len(TIMES))
    X, waves, shares, kept, calls = latin(4, 40, seed), [], [], [], []

    def implausible(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        of_each = [emulation.implausibility(e, x, z, observation_std=ERROR) for e in waves]
        return np.max(of_each, axis=0)

    def of_simulator(x: np.ndarray) -> np.ndarray:
        return np.abs(z - oscillation(x)).max(axis=1) / ERROR

    for wave in range(3):
        emulator = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=seed)
        waves.append(emulator.fit(X, oscillation(X)))
        calls.clear()
        left = emulation.sample_plausible(implausible, BOUNDS, 200, cutoff=CUTOFF, seed=seed)
        shares.append(left.share)
        kept.append(bool(implausible(truth[None])[0] <= CUTOFF))
        if wave < 2:
            new = emulation.suggest(emulator, BOUNDS, batch=20, candidates=left.points)
            X = np.vstack([X, new])
    evaluations = sum(calls) - 1
    exact = emulation.sample_plausible(of_simulator, BOUNDS, 2_000, cutoff=CUTOFF, seed=seed)
    uniform = tfp.distributions.Uniform(np.zeros(4), np.ones(4))
    prior = tfp.distributions.Independent(uniform, 1)
    found = emulation.input_posterior(
        emulator, z, prior, observation_std=ERROR, num_draws=200, num_burnin=200, seed=seed
    )
    low, high = np.quantile(found.draws.reshape(-1, 4), [0.05, 0.95], axis=0)
    return {
        "shares": shares,
        "share_of_simulator": exact.share,
        "kept": kept,
        "evaluations_of_last": evaluations,
        "inside_90": int(((low <= truth) & (truth <= high)).sum()),
        "r_hat": float(found.r_hat.max()),
        "effective_size": float(found.effective_size.min()),
    }


def run_noise(seed: int) -> dict[str, Any]:
    """Mean and noise of a simulator whose noise depends on the inputs."""
    rng = np.random.default_rng(seed)

    def mean(x: np.ndarray) -> np.ndarray:
        return np.sin(5.0 * x[:, 0]) * (1.0 + x[:, 1])

    def noise(x: np.ndarray) -> np.ndarray:
        return 0.1 * (1.0 + 4.0 * x[:, 1])

    X, T = np.repeat(latin(2, 40, seed), 5, axis=0), latin(2, 1_000, 1_000 + seed)
    y, t = (mean(x) + noise(x) * rng.standard_normal(len(x)) for x in (X, T))
    row = {}
    for likelihood in ("gaussian", "heteroskedastic"):
        model = DeepWishartRegressor(likelihood=likelihood, effort="quick", random_state=seed)
        told, std = model.fit(X, y).predict(T, return_std=True)
        row[likelihood] = scores((told[None], np.square(std)[None]), t)
        row[likelihood]["of_mean"] = float(np.sqrt(np.mean((told - mean(T)) ** 2)) / mean(T).std())
        of_noise, lower, upper = model.predict_noise(T)
        row[likelihood]["of_noise"] = float(np.mean(np.abs(np.log(of_noise / noise(T)))))
        inside = (lower <= noise(T)) & (noise(T) <= upper)
        row[likelihood]["noise_inside_95"] = float(inside.mean())
    return row


def run_replicates(seed: int) -> dict[str, Any]:
    """CPU seconds and error of the mean, by how often each input is run."""
    rng = np.random.default_rng(seed)

    def mean(x: np.ndarray) -> np.ndarray:
        return np.sin(np.pi * x[:, 0] * x[:, 1]) + 2.0 * (x[:, 2] - 0.5) ** 2 + x[:, 3]

    X, T, row = latin(5, 100, seed), latin(5, 1_000, 1_000 + seed), {}
    for times in (1, 10, 100):
        runs = np.repeat(X, times, axis=0)
        y = mean(runs) + 0.5 * rng.standard_normal(len(runs))
        began = time.process_time()
        model = DeepWishartRegressor(likelihood="gaussian", effort="quick", random_state=seed)
        told, std = model.fit(runs, y).predict(T, return_std=True, include_noise=False)
        seconds = time.process_time() - began
        row[str(times)] = {**scores((told[None], np.square(std)[None]), mean(T)), "cpu_s": seconds}
    return row


TASKS: dict[str, Callable[[int], dict[str, Any]]] = {
    "waves": run_waves,
    "noise": run_noise,
    "replicates": run_replicates,
}


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", default=list(TASKS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11, 12, 13, 14])
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    done = {(row["task"], row["seed"]) for row in map(json.loads, lines)}
    warnings.simplefilter("ignore")
    for task, seed in itertools.product(given.tasks, given.seeds):
        if (task, seed) in done:
            continue
        began = time.process_time()
        row = {"task": task, "seed": seed, **TASKS[task](seed)}
        row["cpu_s"] = time.process_time() - began
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
