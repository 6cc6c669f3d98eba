"""Emulate a simulator with ridges by an exact Gaussian process and by the default model.

    python ci/demo.py [FOLDER]

The simulator is Schaffer's fourth function on [-2, 2]², without noise, of which a hundred runs of a
Latin hypercube are seen. Scores of 2,500 points of a grid are printed, and a picture of the
function and of both predictions is written to FOLDER/ridges.png (default: runs/demo).
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm, qmc
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from gpflow_dwp.cli.runs import load_tensorflow

load_tensorflow("TensorFlow is imported.")

from gpflow_dwp.estimator import DeepWishartRegressor  # noqa: E402


def simulator(X: np.ndarray) -> np.ndarray:
    """Schaffer's fourth function, of X [N, 2]."""
    a, b = X.T
    wave = np.cos(np.sin(np.abs(a**2 - b**2))) ** 2
    return 0.5 + (wave - 0.5) / (1.0 + 0.001 * (a**2 + b**2)) ** 2


def main() -> None:
    """Fit both, print scores and write the picture."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
    X = 4.0 * qmc.LatinHypercube(2, seed=0).random(100) - 2.0
    line = np.linspace(-2.0, 2.0, 50)
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    y, truth = simulator(X), simulator(grid)
    kernel = kernels.ConstantKernel() * kernels.RBF([1.0, 1.0]) + kernels.WhiteKernel(1e-4)
    models = {
        "exact Gaussian process": GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=5, random_state=0
        ),
        "deep Wishart process": DeepWishartRegressor(random_state=0),
    }
    pictures = {"simulator": truth}
    print(f"{'':24}  RMSE    log density  seconds")
    for name, model in models.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        mean, std = model.predict(grid, return_std=True)
        if isinstance(model, DeepWishartRegressor):
            density = model.predict_log_density(grid, truth)
        else:
            density = norm(mean, np.maximum(std, 1e-9)).logpdf(truth)
        error = np.sqrt(np.mean((mean - truth) ** 2))
        seconds = time.perf_counter() - began
        print(f"{name:24}  {error:.4f}  {density.mean():11.2f}  {seconds:7.0f}")
        pictures[name] = mean
    print(models["deep Wishart process"].reason_)
    figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.4), sharey=True, layout="constrained")
    for axis, (name, values) in zip(axes, pictures.items(), strict=True):
        axis.pcolormesh(line, line, values.reshape(50, 50), vmin=truth.min(), vmax=truth.max())
        axis.plot(*X.T, "w.", markersize=3)
        axis.set_title(name)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "ridges.png", dpi=150)
    print(f"The picture is in {folder / 'ridges.png'}")


if __name__ == "__main__":
    main()
