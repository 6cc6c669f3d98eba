"""Predictions in the units of the user's table, and how they are judged."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    RawUnits,
    expected_calibration_error,
    explained_variance,
    interval_coverage,
    rmse,
)
from gpflow_dwp.models import VariationalModel

__all__ = [
    "INTERVAL",
    "ClassificationPredictions",
    "Predictions",
    "RegressionPredictions",
    "predict",
]

INTERVAL = 0.95
"""Probability of the intervals that are written and drawn."""


class Predictions(abc.ABC):
    """Predictions for the rows of one table."""

    @abc.abstractmethod
    def columns(self, target_name: str, classes: tuple[str, ...] | None) -> dict[str, Array]:
        """Return what is added to the user's table, by column name."""

    @abc.abstractmethod
    def error(self, Y: Array) -> float:
        """Return the root mean squared error, or the share of wrong labels, given Y [N, 1]."""

    @abc.abstractmethod
    def scores(self, Y: Array) -> dict[str, float]:
        """Return further scores, by the names of :class:`~gpflow_dwp.evaluation.Scores`."""

    @abc.abstractmethod
    def calibration(self, Y: Array) -> dict[str, float]:
        """Return figures of how honest the uncertainty is, given Y [N, 1]."""


@dataclass(frozen=True)
class RegressionPredictions(Predictions):
    """Moments and intervals of the predictive distributions, in raw units, [N] each.

    :param mean: Predictive mean.
    :param deviation: Predictive standard deviation, noise included.
    :param lower: Lower end of the interval of probability :data:`INTERVAL`.
    :param upper: Upper end.
    :param probability_below: Predictive probability of a value below the target; None where no
        target was given.
    :param crps: Continuous ranked probability score of the target; None likewise.
    """

    mean: Array
    deviation: Array
    lower: Array
    upper: Array
    probability_below: Array | None = None
    crps: Array | None = None

    def columns(self, target_name: str, classes: tuple[str, ...] | None) -> dict[str, Array]:
        percent = f"{100 * INTERVAL:g}"
        return {
            f"{target_name}_mean": self.mean,
            f"{target_name}_sd": self.deviation,
            f"{target_name}_lower_{percent}": self.lower,
            f"{target_name}_upper_{percent}": self.upper,
        }

    def error(self, Y: Array) -> float:
        return rmse(Y[:, 0], self.mean)

    def scores(self, Y: Array) -> dict[str, float]:
        crps = {} if self.crps is None else {"crps": float(self.crps.mean())}
        return {**crps, "r2": explained_variance(Y[:, 0], self.mean)}

    def calibration(self, Y: Array) -> dict[str, float]:
        coverage = interval_coverage(Y[:, 0], self.lower, self.upper)
        return {f"coverage_of_{100 * INTERVAL:g}%_intervals": coverage}


@dataclass(frozen=True)
class ClassificationPredictions(Predictions):
    """Probability of each class, [N, C]."""

    probabilities: Array

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """Index of the most probable class, [N]."""
        return self.probabilities.argmax(axis=1)

    def columns(self, target_name: str, classes: tuple[str, ...] | None) -> dict[str, Array]:
        names = np.array(classes)
        probabilities = {
            f"{target_name}_probability_{name}": column
            for name, column in zip(names, self.probabilities.T, strict=True)
        }
        return {f"{target_name}_predicted": names[self.labels], **probabilities}

    def error(self, Y: Array) -> float:
        return float(np.mean(self.labels != Y[:, 0]))

    def scores(self, Y: Array) -> dict[str, float]:
        return {"ece": expected_calibration_error(self.probabilities, Y[:, 0].astype(int))}

    def calibration(self, Y: Array) -> dict[str, float]:
        return {"mean_confidence": float(self.probabilities.max(axis=1).mean())}


def predict(
    model: VariationalModel,
    X: Array,
    target: Standardiser | None,
    *,
    Y: Array | None = None,
    num_samples: int | None = None,
    seed: int = 0,
) -> Predictions:
    """Predict a table's rows.

    :param model: A trained model.
    :param X: Standardised inputs, [N, D].
    :param target: Standardiser of the target; None for labels.
    :param Y: Targets in raw units, [N, 1], where calibration is to be judged.
    :param num_samples: Draws that make up the mixture; None for the model's own number.
    :param seed: For the draws.
    """
    posterior = model.posterior(num_samples, seed=seed)
    tf.random.set_seed(seed)  # some likelihoods draw from the global generator
    units = RawUnits(model, output_standardiser=target)
    if target is None:
        return ClassificationPredictions(units.probabilities(posterior, X))
    parts = [
        _predict_block(distribution, None if Y is None else Y[rows])
        for rows, distribution in units.distributions(posterior, X)
    ]
    return RegressionPredictions(*np.concatenate(parts, axis=1))


def _predict_block(distribution: PredictiveDistribution, Y: Array | None) -> Array:
    """The fields of :class:`RegressionPredictions`, as far as they are known, [4 or 6, N]."""
    ends = distribution.quantile([0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
    known = [distribution.mean(), np.sqrt(distribution.variance()), *ends]
    if Y is not None:
        known += [distribution.cdf(Y), distribution.crps(Y)]
    return np.stack(known)[..., 0]
