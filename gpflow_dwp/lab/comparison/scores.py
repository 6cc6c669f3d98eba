"""What models predict of a number, and the scores of predictions: one formula for all models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import norm

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation import expected_calibration_error, interval_coverage, rmse

__all__ = [
    "LEVELS",
    "METRICS",
    "EstimatorPrediction",
    "NormalPrediction",
    "classification_scores",
    "quantile_crps",
    "regression_scores",
]

METRICS = {
    "regression": ("nlpd", "crps", "rmse", "coverage_90", "fit_seconds", "predict_seconds"),
    "classification": ("nll", "error", "ece", "fit_seconds", "predict_seconds"),
}
"""What is measured, by task. Times are those of the processor, in seconds."""

# Quantiles of a mixture are found for all its components and levels at once.
_ROWS_AT_ONCE = 500

_NUM_LEVELS = 99
LEVELS = (np.arange(_NUM_LEVELS) + 0.5) / _NUM_LEVELS
"""Levels of the quantiles that the CRPS is computed from, [99]: midpoints of equal steps."""

_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


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
        starts = range(0, len(self.X), _ROWS_AT_ONCE)
        blocks = [self.X[start : start + _ROWS_AT_ONCE] for start in starts]
        return np.concatenate([self.estimator.predict_quantiles(block, levels) for block in blocks])


def quantile_crps(y: npt.ArrayLike, quantiles: npt.ArrayLike) -> float:
    """Mean continuous ranked probability score, in the unit of the target.

    It is twice the pinball loss, integrated over the levels from 0 to 1 (Gneiting and Raftery,
    2007, section 4.2), here by the midpoint rule at :data:`LEVELS`. For a standard normal that is
    less than the exact score by 0.00005 at one standard deviation from the mean, by 0.0014 at
    three.

    :param y: Targets, [N].
    :param quantiles: Of each target at :data:`LEVELS`, [N, 99].
    :raises ValueError: If the shapes do not fit.
    """
    truth, found = np.asarray(y, np.float64), np.asarray(quantiles, np.float64)
    if found.shape != (*truth.shape, _NUM_LEVELS) or truth.ndim != 1:
        raise ValueError(
            f"quantiles must have shape [N, {_NUM_LEVELS}] for y of shape [N], got "
            f"{list(found.shape)} and {list(truth.shape)}."
        )
    above = truth[:, None] - found
    return 2.0 * float(np.maximum(LEVELS * above, (LEVELS - 1.0) * above).mean())


def regression_scores(
    prediction: NormalPrediction | EstimatorPrediction, y: Array
) -> dict[str, float]:
    """Score predictions of numbers.

    :param prediction: For N rows.
    :param y: Their targets in raw units, [N].
    :return: nlpd (negative log predictive density, nats), crps and rmse (unit of the target), and
        coverage_90, the share of the targets within central intervals of probability 0.9.
    """
    ends = prediction.quantiles(np.array([0.05, 0.95]))
    return {
        "nlpd": -float(np.mean(prediction.log_density(y))),
        "crps": quantile_crps(y, prediction.quantiles(LEVELS)),
        "rmse": rmse(y, prediction.mean()),
        "coverage_90": interval_coverage(y, ends[:, 0], ends[:, 1]),
    }


def classification_scores(probabilities: Array, labels: Array) -> dict[str, float]:
    """Score predictions of classes.

    :param probabilities: Probability of each class, [N, C].
    :param labels: Class indices, [N].
    :return: nll (negative log probability of the labels, nats; a probability of 0 counts as
        2.2e-16, as in scikit-learn's ``log_loss``), error (share of wrong labels) and ece.
    """
    indices = labels.astype(int)
    chosen = np.maximum(probabilities[np.arange(len(indices)), indices], _LEAST_PROBABILITY)
    return {
        "nll": -float(np.mean(np.log(chosen))),
        "error": float(np.mean(probabilities.argmax(axis=1) != indices)),
        "ece": expected_calibration_error(probabilities, indices),
    }
