"""Predictive marginals by their samples: a kernel density estimate, and a test of normality."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import gaussian_kde, shapiro

from gpflow_dwp.base import Array

__all__ = ["kernel_log_density", "shapiro_wilk_statistics"]


def kernel_log_density(y: npt.ArrayLike, samples: npt.ArrayLike) -> Array:
    """Estimate the log density of each observation from samples of it.

    A Gaussian kernel density estimate with the bandwidth of Silverman's rule: how Salimbeni,
    Dutordoir, Hensman and Deisenroth (2019) score their models, with 2,000 samples. It smooths the
    marginal, so it is for comparison with their tables; a mixture's own density needs no estimate.

    :param y: Observations, [N].
    :param samples: Draws of them, [S, N], S at least 2.
    :return: Log densities, [N].
    :raises ValueError: If the shapes do not fit.
    """
    draws = _check_samples(samples, at_least=2)
    values = np.asarray(y, np.float64)
    if values.shape != draws.shape[1:]:
        raise ValueError(f"y must have shape [{draws.shape[1]}], got {list(values.shape)}.")
    return np.array(
        [
            gaussian_kde(column, bw_method="silverman").logpdf(value)[0]
            for value, column in zip(values, draws.T, strict=True)
        ]
    )


def shapiro_wilk_statistics(samples: npt.ArrayLike) -> Array:
    """Return the Shapiro-Wilk statistic of each marginal: near 1 for a Gaussian, less for others.

    :param samples: Draws of the observations, [S, N], S at least 3.
    :return: Statistics, [N].
    :raises ValueError: If ``samples`` is not of that shape.
    """
    draws = _check_samples(samples, at_least=3)
    return np.array([shapiro(column).statistic for column in draws.T])


def _check_samples(samples: npt.ArrayLike, at_least: int) -> Array:
    draws = np.asarray(samples, np.float64)
    if draws.ndim != 2 or len(draws) < at_least:
        raise ValueError(
            f"samples must have shape [S, N] with S at least {at_least}, got {list(draws.shape)}."
        )
    return draws
