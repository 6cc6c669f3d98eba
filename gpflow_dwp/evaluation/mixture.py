"""The predictive distribution of one target: a mixture of S normals, with equal weights or others.

Component s comes from one joint draw of all layers. ``means`` and ``variances`` have shape [S, N],
in one unit and its square; N points are independent problems. ``weights`` of the components, [S],
sum to 1, and are equal where they are None. Functions raise a :class:`ValueError` if shapes do not
fit or a variance is not positive.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from gpflow_dwp.base import Array
from gpflow_dwp.optional import import_optional

__all__ = [
    "check_mixture",
    "log_normal_probability",
    "mixture_cdf",
    "mixture_crps_of_each",
    "mixture_log_density",
    "mixture_quantile",
]

_MAX_STEPS = 200
_TOLERANCE = 1e-12  # of the widest component's standard deviation
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_MAX_PAIRS = 2**20
_MAX_VALUES = 2**18  # of components at a time, few enough to stay in a cache


def check_mixture(means: npt.ArrayLike, variances: npt.ArrayLike) -> tuple[Array, Array]:
    """Return both as float64 arrays, the second one as standard deviations, [S, N]."""
    mean, variance = np.asarray(means, np.float64), np.asarray(variances, np.float64)
    if mean.ndim != 2 or mean.shape != variance.shape or not len(mean):
        raise ValueError(
            "means and variances must both have shape [S, N], got "
            f"{list(mean.shape)} and {list(variance.shape)}"
        )
    if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance > 0.0).all()):
        raise ValueError("means must be finite, and variances finite and positive")
    return mean, np.sqrt(variance)


def mixture_cdf(
    y: npt.ArrayLike,
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Array:
    """Cumulative distribution function; at the observed targets, the PIT (uniform if calibrated).

    :param y: Where to evaluate, [..., N] or a number for all points.
    :return: Probabilities, [..., N].
    """
    z, deviation = _standardised(y, means, variances)
    return _weights(weights, len(deviation)) @ ndtr(z)


def mixture_log_density(
    y: npt.ArrayLike,
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Array:
    """Log density, per unit of ``y``.

    :param y: Where to evaluate, [..., N] or a number for all points.
    :return: Log densities, [..., N].
    """
    z, deviation = _standardised(y, means, variances)
    each = -0.5 * np.square(z) - np.log(deviation) - _LOG_SQRT_2PI
    return logsumexp(each, axis=-2, b=_weights(weights, len(deviation))[:, None])


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
    levels: npt.ArrayLike,
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Array:
    """Inverse of :func:`mixture_cdf`, by Newton's method kept within a shrinking bracket.

    Where components are so far apart that the distribution function is flat between them, and the
    level is the height of the flat, any point of the flat is a quantile and one of them is given.

    :param levels: A probability, or a vector of L, strictly between 0 and 1.
    :return: Quantiles, [N] for one level and [L, N] for a vector.
    :raises ValueError: Also if a level is not between 0 and 1.
    """
    mean, deviation = check_mixture(means, variances)
    weight = _weights(weights, len(mean))
    level = np.asarray(levels, np.float64)
    if level.ndim > 1 or not ((level > 0.0) & (level < 1.0)).all():
        raise ValueError(f"levels must lie strictly between 0 and 1, got {levels!r}")
    # Each level at each point is a problem of its own, [L N].
    size, num_points = max(1, _MAX_VALUES // len(mean)), mean.shape[1]
    targets, points = np.repeat(level, num_points), np.tile(np.arange(num_points), level.size)
    found = np.empty(len(points))
    for start in range(0, len(points), size):
        block = slice(start, start + size)
        chosen = points[block]
        found[block] = _solve(targets[block], mean[:, chosen], deviation[:, chosen], weight)
    return found.reshape(*level.shape, num_points)


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
            density = weight @ (np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI) / deviation)
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


def mixture_crps_of_each(y: npt.ArrayLike, means: npt.ArrayLike, variances: npt.ArrayLike) -> Array:
    """The continuous ranked probability score of each target, exactly, with equal weights.

    :param y: Targets, [N].
    :return: Scores in the unit of ``y``, [N].
    :raises ImportError: If scoringrules is not installed.
    """
    scoringrules = import_optional("scoringrules", "cli")
    mean, deviation = check_mixture(means, variances)
    truth = np.asarray(y, np.float64)
    if truth.shape != mean.shape[1:]:
        raise ValueError(f"y must have shape [{mean.shape[1]}], got {list(truth.shape)}")
    # Pairs of components are formed, S² for each point: a block of points at a time.
    size = max(1, _MAX_PAIRS // len(mean) ** 2)
    blocks = [slice(start, start + size) for start in range(0, len(truth), size)]
    parts = ((truth[block], mean.T[block], deviation.T[block]) for block in blocks)
    return np.concatenate([scoringrules.crps_mixnorm(*part, backend="numpy") for part in parts])


def _weights(weights: npt.ArrayLike | None, size: int) -> Array:
    """[S], equal if there are none."""
    found = np.full(size, 1.0 / size) if weights is None else np.asarray(weights, np.float64)
    if found.shape != (size,):
        raise ValueError(f"weights must have shape [{size}], got {list(found.shape)}")
    return found


def _standardised(
    y: npt.ArrayLike, means: npt.ArrayLike, variances: npt.ArrayLike
) -> tuple[Array, Array]:
    """(y - mean) / deviation for each component, [..., S, N], and the deviations [S, N]."""
    mean, deviation = check_mixture(means, variances)
    values = np.asarray(y, np.float64)
    if values.ndim and values.shape[-1] != mean.shape[1]:
        raise ValueError(f"y must have shape [..., {mean.shape[1]}], got {list(values.shape)}")
    return ((values[..., None, :] if values.ndim else values) - mean) / deviation, deviation
