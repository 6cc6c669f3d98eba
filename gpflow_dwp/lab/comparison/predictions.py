"""What every rival predicts of a number, and what is scored: mean, log density, quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import norm

from gpflow_dwp.base import Array

__all__ = ["EstimatorPrediction", "NormalPrediction", "Prediction"]

# Quantiles of a mixture are found for all its components and levels at once.
_ROWS_AT_ONCE = 500


class Prediction(Protocol):
    """Predictive distributions of the targets of N rows, in raw units."""

    def mean(self) -> Array:
        """Return the means, [N]."""

    def log_density(self, y: Array) -> Array:
        """Return the log densities of targets [N], per unit of the target, [N]."""

    def quantiles(self, levels: Array) -> Array:
        """Return the quantiles at K levels, strictly between 0 and 1, [N, K]."""


@dataclass(frozen=True, eq=False)
class NormalPrediction:
    """A normal distribution for each row.

    :param means: In the unit of the target, [N].
    :param deviations: Standard deviations, noise included, [N] or one for all.
    """

    means: Array
    deviations: npt.ArrayLike

    def mean(self) -> Array:
        """Return the means, [N]."""
        return self.means

    def log_density(self, y: Array) -> Array:
        """Return the log densities of targets [N], [N]."""
        return np.asarray(norm.logpdf(y, self.means, self.deviations))

    def quantiles(self, levels: Array) -> Array:
        """Return the quantiles at K levels, [N, K]."""
        deviations = np.broadcast_to(np.asarray(self.deviations, np.float64), self.means.shape)
        return self.means[:, None] + deviations[:, None] * ndtri(np.asarray(levels))


@dataclass(frozen=True, eq=False)
class EstimatorPrediction:
    """What a :class:`~gpflow_dwp.estimator.DeepWishartRegressor` says, by its public methods.

    :param estimator: A fitted one, of one target.
    :param X: Inputs in raw units, [N, D].
    """

    estimator: Any
    X: Array

    def mean(self) -> Array:
        """Return the means, [N]."""
        return np.asarray(self.estimator.predict(self.X))

    def log_density(self, y: Array) -> Array:
        """Return the log densities of targets [N], [N]."""
        return np.asarray(self.estimator.predict_log_density(self.X, y))

    def quantiles(self, levels: Array) -> Array:
        """Return the quantiles at K levels, [N, K]."""
        blocks = range(0, len(self.X), _ROWS_AT_ONCE)
        return np.concatenate(
            [
                self.estimator.predict_quantiles(self.X[start : start + _ROWS_AT_ONCE], levels)
                for start in blocks
            ]
        )
