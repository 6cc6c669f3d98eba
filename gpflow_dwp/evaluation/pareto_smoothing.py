"""Importance weights whose largest ones are replaced by expected order statistics."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution

__all__ = ["MOST_K", "pareto_smoothed", "without_own_row"]

# Above this k̂ weights cannot be relied on.
MOST_K = 0.7
_PRIOR_SCALE, _PRIOR_K, _PRIOR_COUNT = 3.0, 0.5, 10.0


def without_own_row(
    distribution: PredictiveDistribution, observed: Array
) -> tuple[PredictiveDistribution, Array]:
    r"""Weigh draws that each row has shaped itself as if it had not; and how far to rely on that.

    Given draw s row n is predicted from the others, but the draws are of a posterior of all rows.
    That without row n is this one by :math:`1 / p(y_n \mid G_s, y_{-n})`, which are weights once
    they are smoothed (Vehtari et al., "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC", 2017). Components are made of equal weight by systematic resampling.

    :param distribution: Of S equally weighted draws.
    :param observed: What was observed, [N, P].
    :return: The distribution, and k̂ of each row, [N]: above ``MOST_K`` it cannot be relied on.
    :raises ValueError: If components have weights of their own.
    """
    if distribution.weights is not None:
        raise ValueError("distribution must have components of equal weights.")
    densities = distribution.component_log_density(observed).sum(axis=-1)
    log_weights, k_hat = pareto_smoothed(-densities)
    totals = np.cumsum(np.exp(log_weights), axis=0)
    levels = (np.arange(len(densities)) + 0.5) / len(densities)
    chosen = [np.searchsorted(total, total[-1] * levels) for total in totals.T]
    chosen = np.stack(chosen, axis=1)[..., None]
    means, variances = (
        np.take_along_axis(part, np.minimum(chosen, len(part) - 1), axis=0)
        for part in (distribution.means, distribution.variances)
    )
    return dataclasses.replace(distribution, means=means, variances=variances), k_hat


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
