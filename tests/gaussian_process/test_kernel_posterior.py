"""Draws of a kernel's values against integrals."""

from __future__ import annotations

import gpflow
import numpy as np

from gpflow_dwp.gaussian_process import Evidence, fit_gaussian_process
from gpflow_dwp.gaussian_process.kernel_posterior import draw_kernel_values
from gpflow_dwp.kernels.values import values_of


def test_draws_have_the_moments_of_their_posterior() -> None:
    """Catches weights without the proposals' density, and moves that do not keep the posterior. By
    another route: sums over a grid of both values, by the definition of the density."""
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    Y = np.sin(2.0 * X)
    kernel, likelihood = gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian(1e-2)
    gpflow.set_trainable(likelihood, False)
    fitted = fit_gaussian_process((X, Y), kernel, likelihood)
    values = values_of(fitted.kernel)
    evidence = Evidence(X, Y, np.ones(12), np.zeros(1), values, likelihood, jitter=0.0)
    *_, found = draw_kernel_values(evidence, 120, seed=0)
    mode, noise = evidence.start()[:2], float(likelihood.variance.numpy())
    steps = np.linspace(-1.5, 6.0, 60)
    grid = np.stack(np.meshgrid(steps, 2.0 * steps, indexing="ij"), axis=-1).reshape(-1, 2)
    scales, variances = np.exp(mode + grid).T[..., None, None]
    K = variances * np.exp(-0.5 * (X - X.T) ** 2 / scales**2) + noise * np.eye(12)
    logs = -0.5 * (np.linalg.slogdet(K)[1] + (Y.T @ np.linalg.solve(K, Y[None]))[:, 0, 0])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    deviation = np.sqrt(weights @ (grid - mean) ** 2)
    assert np.all(np.abs(found.mean(0) - mean) < 0.3 * deviation)
    np.testing.assert_allclose(found.std(0), deviation, rtol=0.3)
