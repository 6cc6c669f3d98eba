"""What models predict of a number, and the scores of predictions: one formula for all models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation import expected_calibration_error, interval_coverage, rmse
from gpflow_dwp.evaluation.normal_prediction import LEVELS, NormalPrediction, quantile_crps

__all__ = [
    "METRICS",
    "EstimatorPrediction",
    "classification_scores",
    "regression_scores",
]

METRICS = {
    "regression": ("nlpd", "crps", "rmse", "coverage_90", "fit_seconds", "predict_seconds"),
    "classification": ("nll", "error", "ece", "fit_seconds", "predict_seconds"),
}
"""What is measured, by task. Times are those of the processor, in seconds."""

# Quantiles of a mixture are found for all its components and levels at once.
_ROWS_AT_ONCE = 500

_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


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
