"""The predictive distribution of one target: a mixture of S normals, with equal weights or others.

Component s comes from one joint draw of all layers. ``means`` and ``variances`` have shape [S, N],
in one unit and its square; N points are independent problems.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr, ndtri

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation._validation import check_mixture

__all__ = ["mixture_cdf", "mixture_log_density", "mixture_quantile"]

_MAX_STEPS = 200
_TOLERANCE = 1e-12  # of the widest component's standard deviation
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


def mixture_cdf(
    y: npt.ArrayLike,
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Array:
    """Cumulative distribution function; at the observed targets, the PIT (uniform if calibrated).

    :param y: Where to evaluate, [..., N] or a number for all points.
    :param means: Means of the components, [S, N].
    :param variances: Variances of the components, [S, N].
    :param weights: Of the components, which sum to 1, [S]; None for equal ones.
    :return: Probabilities, [..., N].
    :raises ValueError: If the shapes do not fit or a variance is not positive.
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
    :param means: Means of the components, [S, N].
    :param variances: Variances of the components, [S, N].
    :param weights: Of the components, which sum to 1, [S]; None for equal ones.
    :return: Log densities, [..., N].
    :raises ValueError: If the shapes do not fit or a variance is not positive.
    """
    z, deviation = _standardised(y, means, variances)
    each = -0.5 * np.square(z) - np.log(deviation) - _LOG_SQRT_2PI
    return logsumexp(each, axis=-2, b=_weights(weights, len(deviation))[:, None])


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
    :param means: Means of the components, [S, N].
    :param variances: Variances of the components, [S, N].
    :param weights: Of the components, which sum to 1, [S]; None for equal ones.
    :return: Quantiles, [N] for one level and [L, N] for a vector.
    :raises ValueError: If a level is not between 0 and 1, the shapes do not fit, or a variance is
        not positive.
    """
    mean, deviation = check_mixture(means, variances)
    weight = _weights(weights, len(mean))
    level = np.asarray(levels, np.float64)
    if level.ndim > 1 or not ((level > 0.0) & (level < 1.0)).all():
        raise ValueError(f"levels must lie strictly between 0 and 1, got {levels!r}")
    target = level[..., None]
    # The mixture's quantile lies between the smallest and the largest of the components'.
    components = mean + deviation * ndtri(level)[..., None, None]
    low, high = components.min(axis=-2), components.max(axis=-2)
    tolerance = _TOLERANCE * deviation.max(axis=0)
    y = 0.5 * (low + high)
    last_step = high - low
    for _ in range(_MAX_STEPS):
        z = (y[..., None, :] - mean) / deviation
        excess = weight @ ndtr(z) - target
        density = weight @ (np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI) / deviation)
        low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = y - excess / density
        # Halve the bracket wherever Newton leaves it, or does not halve its own last step.
        slow = np.abs(newton - y) > 0.5 * last_step
        safe = np.isfinite(newton) & (newton >= low) & (newton <= high) & ~slow
        new = np.where(safe, newton, 0.5 * (low + high))
        last_step, y = np.abs(new - y), new
        if (last_step <= tolerance + np.spacing(np.abs(y))).all():
            break
    return y


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
