"""Mixtures of S normals at N points: the arithmetic of a predictive distribution.

``means`` and ``variances`` of the components are [S, N], in one unit and its square; points are
independent problems. ``weights``, [S], sum to 1, and are equal where they are None. What is wrong
with them :class:`~gpflow_dwp.evaluation.PredictiveDistribution` says.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from gpflow_dwp.base import Array

__all__ = ["log_normal_probability", "mixture_cdf", "mixture_quantile", "mixture_weights"]

_MAX_STEPS = 200
_TOLERANCE = 1e-12  # of the widest component's standard deviation
_SQRT_2PI = np.sqrt(2.0 * np.pi)
_MAX_VALUES = 2**18  # of components at a time, few enough to stay in a cache


def mixture_weights(weights: Array | None, size: int) -> Array:
    """Return the weights of S components, equal ones for None, [S]."""
    return np.full(size, 1.0 / size) if weights is None else np.asarray(weights, np.float64)


def mixture_cdf(y: Array, means: Array, variances: Array, weights: Array | None = None) -> Array:
    """Return the cumulative distribution function at y [..., N], [..., N], within [0, 1]."""
    z = (y[..., None, :] - means) / np.sqrt(variances)
    # The sum of rounded weights is above 1 by a rounding error, or below.
    return np.minimum(mixture_weights(weights, len(means)) @ ndtr(z), 1.0)


def log_normal_probability(lower: Array, upper: Array) -> Array:
    """Log probability that a standard normal number is between two, also far out in a tail.

    :param lower: Of any shape.
    :param upper: Of the same shape, above ``lower``.
    """
    # In the lower half a difference of distribution functions keeps its digits.
    flip = lower + upper > 0.0
    a, b = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    with np.errstate(divide="ignore"):
        return log_b + np.log(-np.expm1(np.minimum(log_a - log_b, 0.0)))


def mixture_quantile(
    levels: Array, means: Array, variances: Array, weights: Array | None = None
) -> Array:
    """Inverse of :func:`mixture_cdf`, by Newton's method kept within a shrinking bracket.

    Where components are so far apart that the distribution function is flat between them, and the
    level is the height of the flat, any point of the flat is a quantile and one of them is given.

    :param levels: Probabilities strictly between 0 and 1, [] or [L].
    :return: Quantiles, [N] or [L, N].
    """
    deviations, weight = np.sqrt(variances), mixture_weights(weights, len(means))
    # Each level at each point is a problem of its own, [L N].
    size, num_points = max(1, _MAX_VALUES // len(means)), means.shape[1]
    targets = np.repeat(levels, num_points)
    points = np.tile(np.arange(num_points), np.size(levels))
    found = np.empty(len(points))
    for start in range(0, len(points), size):
        block = slice(start, start + size)
        chosen = points[block]
        found[block] = _solve(targets[block], means[:, chosen], deviations[:, chosen], weight)
    return found.reshape(*np.shape(levels), num_points)


def _solve(level: Array, mean: Array, deviation: Array, weight: Array) -> Array:
    """The quantile at a level of its own for each of n mixtures of components [S, n]."""
    score = ndtri(level)
    # The mixture's quantile lies between the smallest and the largest of the components'.
    components = mean + deviation * score
    low, high = components.min(axis=0), components.max(axis=0)
    tolerance = _TOLERANCE * deviation.max(axis=0)
    # Where a normal distribution of the same moments has it, if they can be computed.
    with np.errstate(invalid="ignore", over="ignore"):
        centre = weight @ mean
        spread = np.sqrt(weight @ (np.square(deviation) + np.square(mean - centre)))
        normal = np.clip(centre + score * spread, low, high)
    y, last_step = np.where(np.isfinite(normal), normal, 0.5 * (low + high)), high - low
    found, left = np.empty(len(level)), np.arange(len(level))
    for _ in range(_MAX_STEPS):
        z = (y - mean) / deviation
        excess = weight @ ndtr(z) - level
        low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            density = weight @ (np.exp(-0.5 * np.square(z)) / (_SQRT_2PI * deviation))
            newton = y - excess / density
        # Halve the bracket wherever Newton leaves it, or does not halve its own last step.
        slow = np.abs(newton - y) > 0.5 * last_step
        safe = np.isfinite(newton) & (newton >= low) & (newton <= high) & ~slow
        new = np.where(safe, newton, 0.5 * (low + high))
        last_step, y = np.abs(new - y), new
        found[left] = y
        going = last_step > tolerance + np.spacing(np.abs(y))
        if not going.any():
            break
        if not going.all():
            mean, deviation = mean[:, going], deviation[:, going]
            state = (left, level, low, high, tolerance, last_step, y)
            left, level, low, high, tolerance, last_step, y = (part[going] for part in state)
    return found
