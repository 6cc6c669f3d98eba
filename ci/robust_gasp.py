"""RobustGaSP's emulator by its defaults and a nugget that is estimated, in NumPy.

Gu, Wang and Berger (2018), "Robust Gaussian stochastic process emulation": a product of Matérn 5/2
correlations over inputs at the mode of its posterior under the jointly robust prior; a constant
mean and the variance are integrated out. A step costs N³.
"""

from __future__ import annotations

import numpy as np
from cases.functions import Array
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize


def _separable(A: Array, B: Array, inverse_lengthscales: Array) -> Array:
    """A product of Matérn 5/2 correlations over inputs, [N, M]."""
    log_correlation = np.zeros((len(A), len(B)))
    for a, b, inverse in zip(A.T, B.T, inverse_lengthscales, strict=True):
        s = np.sqrt(5.0) * inverse * np.abs(a[:, None] - b)
        log_correlation += np.log1p(s + s**2 / 3.0) - s
    return np.exp(log_correlation)


def _lost_by(parameters: Array, X: Array, y: Array) -> tuple[float, Array]:
    """Minus the log posterior of log inverse lengthscales and log nugget, and its gradient.

    :param parameters: [D + 1]; the nugget is a ratio to the variance.
    """
    (N, D), ratios = X.shape, np.exp(parameters)
    R = _separable(X, X, ratios[:-1])
    try:
        root = cholesky(R + (ratios[-1] + 1e-12) * np.eye(N), lower=True)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros(D + 1)
    inverse = cho_solve((root, True), np.eye(N))
    ones = inverse.sum(0)
    residuals = y - ones @ y / ones.sum()
    weights = inverse @ residuals
    square = residuals @ weights
    weigh = np.append(np.ptp(X, axis=0) * N ** (-1.0 / D), 1.0) * ratios
    a, b = 0.2, N ** (-1.0 / D) * (0.2 + D)
    log_posterior = -np.log(np.diag(root)).sum() - 0.5 * np.log(ones.sum())
    log_posterior += a * np.log(weigh.sum()) - b * weigh.sum() - 0.5 * (N - 1) * np.log(square)
    by_matrix = np.outer(ones, ones) / ones.sum() + (N - 1) * np.outer(weights, weights) / square
    by_matrix = 0.5 * (by_matrix - inverse)
    gradient = np.append(np.zeros(D), ratios[-1] * np.trace(by_matrix))
    by_matrix *= R
    for d, x in enumerate(X.T):
        s = np.sqrt(5.0) * ratios[d] * np.abs(x[:, None] - x)
        gradient[d] = -np.sum(by_matrix * s**2 * (1.0 + s) / (3.0 + 3.0 * s + s**2))
    return -log_posterior, -gradient - (a / weigh.sum() - b) * weigh


def robust_gasp(X: Array, y: Array, T: Array, seed: int) -> tuple[Array, Array, float]:
    """Predict functions at T [M, D] of runs X [N, D], y [N], from two starts.

    :return: Means [M] and variances [M] of the function, and the variance of the nugget.
    """
    (N, D), rng = X.shape, np.random.default_rng(seed)
    y = y if y.std() else y + 1e-7 * rng.standard_normal(N)  # constants, as the benchmark has them
    centre, scale = y.mean(), y.std()
    z = (y - centre) / scale
    start = 0.5 * (0.2 + D) / (D * np.ptp(X, axis=0) * N ** (-2.0 / D) * (0.2 + D))
    starts = np.append(np.log(start), np.log(1e-4)) + np.append([0], rng.normal(size=1))[:, None]
    fits = (minimize(_lost_by, each, (X, z), "L-BFGS-B", jac=True) for each in starts)
    ratios = np.exp(min(fits, key=lambda fit: fit.fun).x)
    nugget = ratios[-1] + 1e-12
    root = cholesky(_separable(X, X, ratios[:-1]) + nugget * np.eye(N), lower=True)
    ones, z, across = (
        solve_triangular(root, part, lower=True)
        for part in (np.ones(N), z, _separable(X, T, ratios[:-1]))
    )
    constant = ones @ z / (ones @ ones)
    residuals = z - constant * ones
    variance = residuals @ residuals / (N - 1)
    mean = centre + scale * (constant + across.T @ residuals)
    trend = (1.0 - ones @ across) ** 2 / (ones @ ones)
    factors = np.maximum(1.0 - (across**2).sum(0) + trend, 0.0)
    variance *= scale**2
    return mean, variance * factors, variance * nugget
