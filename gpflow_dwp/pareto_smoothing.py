"""Importance weights whose largest ones are replaced by expected order statistics."""

from __future__ import annotations

import math

import numpy as np

from gpflow_dwp.base import Array

__all__ = ["MOST_K", "pareto_smoothed"]

# Above this k̂ weights cannot be relied on.
MOST_K = 0.7
_PRIOR_SCALE, _PRIOR_K, _PRIOR_COUNT = 3.0, 0.5, 10.0


def pareto_smoothed(log_ratios: Array) -> tuple[Array, Array]:
    """Smooth importance ratios of S draws, for each of N targets (Vehtari et al., 2024).

    :param log_ratios: Logarithms of ratios, [S, N].
    :return: Log weights, whose exponentials sum to one, [S, N], and k̂, [N]: the shape of the
        generalised Pareto distribution of the largest ratios, infinite where there are too few.
    """
    num_samples, num_targets = log_ratios.shape
    log_weights = log_ratios - log_ratios.max(axis=0)
    k_hat = np.full(num_targets, np.inf)
    num_tail = math.ceil(min(0.2 * num_samples, 3.0 * math.sqrt(num_samples)))
    if num_tail > 4:
        order = np.argsort(log_weights, axis=0)
        tail = order[-num_tail:]
        cutoff = np.take_along_axis(log_weights, order[-num_tail - 1][None], axis=0)
        cutoff = np.exp(np.maximum(cutoff, np.log(np.finfo(float).tiny)))
        excess = np.exp(np.take_along_axis(log_weights, tail, axis=0)) - cutoff
        varies = excess[-1] > 1e-12
        k, sigma = _generalised_pareto(excess[:, varies])
        p = (np.arange(num_tail)[:, None] + 0.5) / num_tail
        values = cutoff[:, varies] + sigma * np.expm1(-k * np.log1p(-p)) / k
        log_weights[tail[:, varies], varies] = np.minimum(np.log(values), 0.0)
        k_hat[varies], k_hat[~varies] = k, -np.inf
    return log_weights - np.logaddexp.reduce(log_weights, axis=0), k_hat


def _generalised_pareto(x: Array) -> tuple[Array, Array]:
    """Shape and scale of samples in ascending order, [n, N] (Zhang and Stephens, 2009).

    The shape is drawn to 0.5 by as much as ten samples.
    """
    n = len(x)
    size = 30 + math.isqrt(n)
    quartile = x[int(n / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(size / (np.arange(size) + 0.5))[:, None]
    b = grid / (_PRIOR_SCALE * np.maximum(quartile, 1e-300)) + 1.0 / x[-1]  # [size, N]
    k = np.mean(np.log1p(-b[:, None] * x), axis=1)
    length = n * (np.log(-b / k) - k - 1.0)
    weights = np.exp(length - np.logaddexp.reduce(length, axis=0))
    b = np.sum(weights * b, axis=0)
    k = np.mean(np.log1p(-b * x), axis=0)
    sigma = -k / b
    return (n * k + _PRIOR_COUNT * _PRIOR_K) / (n + _PRIOR_COUNT), sigma
