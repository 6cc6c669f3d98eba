"""What a model says of each row, in a few numbers and raw units, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gpflow import likelihoods

from gpflow_dwp.base import Array
from gpflow_dwp.data.standardiser import root_mean_square
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.evaluation.raw_units import RawUnits

__all__ = [
    "INTERVAL",
    "Judgement",
    "LabelPredictions",
    "NumberPredictions",
    "Scores",
    "expected_calibration_error",
    "judge",
    "predict",
    "predicted_numbers",
]


class Scores(NamedTuple):
    """How well a model does.

    :param elbo: Bound on, or logarithm of, the marginal likelihood, per training row, in nats;
        None for a model that has neither.
    :param log_likelihood: Mean log density (regression) or log probability of the test targets.
    :param error: Root mean squared error, or for labels the share that is wrong.
    :param seconds: Wall-clock time of training.
    :param crps: Mean continuous ranked probability score of regression.
    :param r2: Share of the test targets' variance that regression explains; NaN of equal targets.
    :param ece: Expected calibration error of labels' probabilities.
    """

    elbo: float | None
    log_likelihood: float
    error: float
    seconds: float
    crps: float | None = None
    r2: float | None = None
    ece: float | None = None

    @classmethod
    def of_numbers(cls, y: Array, mean: Array, **known: Any) -> Scores:
        """Score predicted means [N] of targets y [N]; the other scores are known."""
        error = float(root_mean_square(y - mean))
        are_equal = y.min() == y.max()  # to which rounding may give a variance
        share = np.nan if are_equal else error / root_mean_square(y - y.mean())
        r2 = 1.0 - float(np.square(share))
        return cls(error=error, r2=r2, **known)

    @classmethod
    def of_labels(cls, labels: Array, probabilities: Array, **known: Any) -> Scores:
        """Score probabilities [N, C] of class indices [N]; the other scores are known."""
        error = float(np.mean(probabilities.argmax(axis=1) != labels))
        return cls(error=error, ece=expected_calibration_error(probabilities, labels), **known)


def expected_calibration_error(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Mean distance of confidence from accuracy (Guo, Pleiss, Sun and Weinberger, 2017, eq. 3).

    Confidence is the probability of the most probable class; rows are put into 15 bins of equal
    width by it, and bins count by their rows.

    :param probabilities: Probability of each class, [N, C].
    :param labels: Class indices, [N].
    """
    of_classes, indices = np.asarray(probabilities, np.float64), np.asarray(labels)
    confidence = of_classes.max(axis=1)
    excess = confidence - (of_classes.argmax(axis=1) == indices)
    bins = np.minimum((confidence * _NUM_BINS).astype(int), _NUM_BINS - 1)
    return float(np.abs(np.bincount(bins, excess)).sum() / len(indices))


INTERVAL = 0.95
"""Probability of the intervals of :class:`NumberPredictions`."""

_NUM_BINS = 15
_LABELS = (likelihoods.Bernoulli, likelihoods.MultiClass, likelihoods.Softmax)


@dataclass(frozen=True, eq=False)
class NumberPredictions:
    """Moments and intervals of predictive distributions, [N] each.

    :param mean: Predictive mean.
    :param deviation: Predictive standard deviation, noise included.
    :param lower: Lower end of the central interval of probability :data:`INTERVAL`.
    :param upper: Upper end of the interval.
    :param below: Predictive probability of less than the target; None where none was given.
    :param log_density: Of the target, per its unit.
    :param crps: Continuous ranked probability score of the target, in its unit.
    """

    mean: Array
    deviation: Array
    lower: Array
    upper: Array
    below: Array | None = None
    log_density: Array | None = None
    crps: Array | None = None

    def scores(self, targets: Array, *, elbo: float | None, seconds: float) -> Scores:
        """Return the scores of the predictions of targets, [N], that were given to them."""
        density, crps = (float(np.mean(np.asarray(part))) for part in (self.log_density, self.crps))
        return Scores.of_numbers(
            targets, self.mean, log_likelihood=density, crps=crps, elbo=elbo, seconds=seconds
        )


@dataclass(frozen=True, eq=False)
class LabelPredictions:
    """Probability of each class, [N, C]."""

    probabilities: Array

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """Index of the most probable class, [N]."""
        return self.probabilities.argmax(axis=1)


class Judgement(NamedTuple):
    """Predictions beside what was observed.

    :param predictions: Predictions of the rows.
    :param scores: Scores of the predictions.
    :param calibration: By name, how sure they are: the share of numbers within their intervals, or
        the mean probability of the label that is predicted.
    """

    predictions: NumberPredictions | LabelPredictions
    scores: Scores
    calibration: dict[str, float]


def predict(
    units: RawUnits, X: Array, *, num_samples: int | None = None, seed: int = 0
) -> NumberPredictions | LabelPredictions:
    """Predict rows.

    :param units: A trained model of one target, between the units of X and of the target.
    :param X: Inputs, [N, D].
    :param num_samples: Draws that make up the mixture; None for the model's own number.
    :param seed: For the draws.
    """
    posterior = units.model.posterior(num_samples, seed=seed)
    if isinstance(units.model.likelihood, _LABELS):
        return LabelPredictions(units.probabilities(posterior, X))
    parts = [predicted_numbers(each) for _, each in units.distributions(posterior, X)]
    return NumberPredictions(*np.concatenate(parts, axis=1))


def judge(
    units: RawUnits,
    X: Array,
    Y: Array,
    *,
    num_samples: int | None = None,
    seed: int = 0,
    elbo: float | None = None,
    seconds: float = 0.0,
) -> Judgement:
    """Predict rows, and compare with their targets.

    :param Y: Targets, or class indices, [N, 1].
    :param elbo: Bound of training, for the scores.
    :param seconds: Seconds that training took, for the scores.

    All else is as for :func:`predict`.
    """
    posterior, targets = units.model.posterior(num_samples, seed=seed), Y[:, 0]
    known: dict[str, Any] = {"seconds": seconds, "elbo": elbo}
    if isinstance(units.model.likelihood, _LABELS):
        known["log_likelihood"] = float(np.mean(units.log_density(posterior, X, Y)))
        labels = LabelPredictions(units.probabilities(posterior, X))
        confidence = float(labels.probabilities.max(axis=1).mean())
        scores = Scores.of_labels(targets, labels.probabilities, **known)
        return Judgement(labels, scores, {"mean_confidence": confidence})
    parts = [
        predicted_numbers(distribution, Y[rows])
        for rows, distribution in units.distributions(posterior, X)
    ]
    numbers = NumberPredictions(*np.concatenate(parts, axis=1))
    inside = (numbers.lower <= targets) & (targets <= numbers.upper)
    calibration = {f"coverage_of_{100 * INTERVAL:g}%_intervals": float(np.mean(inside))}
    return Judgement(numbers, numbers.scores(targets, **known), calibration)


def predicted_numbers(distribution: PredictiveDistribution, Y: Array | None = None) -> Array:
    """The fields of :class:`NumberPredictions` of one target, those of targets [N, 1] if given."""
    ends = distribution.quantile([0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
    known = [distribution.mean(), distribution.deviation(), *ends]
    if Y is not None:
        known += [distribution.cdf(Y), distribution.log_density(Y), distribution.crps(Y)]
    return np.stack(known)[..., 0]
