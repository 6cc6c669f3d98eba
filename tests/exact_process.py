"""Emulators of a single layer, and their Gaussian process by plain NumPy."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.estimator import DeepWishartRegressor


def one_layer(**arguments: object) -> DeepWishartRegressor:
    given = {"likelihood": "noise_free", "kernel": "SquaredExponential", **arguments}
    return DeepWishartRegressor(depth=1, random_state=0, **given)


class Exact:
    """The process of an emulator of one output, given any runs."""

    def __init__(self, emulator: DeepWishartRegressor, X: np.ndarray, y: np.ndarray) -> None:
        self.inputs, outputs = emulator.input_standardiser_, emulator.output_standardiser_
        self.mean, self.scale = float(outputs.mean[0]), float(outputs.scale[0])
        self.kernel = emulator.model_.output_layer.kernel
        self.noise = float(emulator.model_.likelihood.variance.numpy())
        self.X, self.y = X, (y - self.mean) / self.scale
        K = self.kernel(self.inputs.transform(X)).numpy()
        self.root = np.linalg.cholesky(K + self.noise * np.eye(len(X)))

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the function, in raw units."""
        runs, at = self.inputs.transform(self.X), self.inputs.transform(points)
        whitened = np.linalg.solve(self.root, self.kernel(runs, at).numpy())
        covariance = self.kernel(at).numpy() - whitened.T @ whitened
        mean = whitened.T @ np.linalg.solve(self.root, self.y)
        return self.mean + self.scale * mean, self.scale**2 * covariance
