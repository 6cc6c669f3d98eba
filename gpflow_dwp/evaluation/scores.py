"""How well predictions do. Given raw units, scores are in raw units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser

__all__ = ["Scores", "expected_calibration_error", "interval_coverage", "rmse"]


class Scores(NamedTuple):
    """How well a model does, in the units of the targets that it was given.

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
        error = rmse(y, mean)
        are_equal = y.min() == y.max()  # to which rounding may give a variance
        r2 = float("nan") if are_equal else 1.0 - error**2 / float(np.var(y))
        return cls(error=error, r2=r2, **known)

    @classmethod
    def of_labels(cls, labels: Array, probabilities: Array, **known: Any) -> Scores:
        """Score probabilities [N, C] of class indices [N]; the other scores are known."""
        error = float(np.mean(probabilities.argmax(axis=1) != labels))
        return cls(error=error, ece=expected_calibration_error(probabilities, labels), **known)

    def in_raw_units(self, target: Standardiser | None) -> Scores:
        """Return scores of standardised targets in the units that these had before.

        :param target: Their standardiser; None for labels, which have no unit.
        """
        if target is None:
            return self
        offset, scale = target.log_density_offset, float(target.scale[0])
        return self._replace(
            elbo=None if self.elbo is None else self.elbo + offset,
            log_likelihood=self.log_likelihood + offset,
            error=self.error * scale,
            crps=None if self.crps is None else self.crps * scale,
        )


def rmse(y_true: npt.ArrayLike, mean: npt.ArrayLike) -> float:
    """Root of the mean squared error, in the unit of the target.

    :param y_true: Targets, [N] or [N, 1].
    :param mean: Predicted means, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, predicted = _alike(y_true=y_true, mean=mean)
    return float(np.sqrt(np.mean(np.square(truth - predicted))))


def interval_coverage(y_true: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Share of the targets within their intervals, ends included.

    :param y_true: Targets, [N] or [N, 1].
    :param lower: Lower ends, of the same shape.
    :param upper: Upper ends, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, low, high = _alike(y_true=y_true, lower=lower, upper=upper)
    return float(np.mean((low <= truth) & (truth <= high)))


def expected_calibration_error(
    probabilities: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
    """Mean distance of confidence from accuracy (Guo, Pleiss, Sun and Weinberger, 2017, eq. 3).

    Confidence is the probability of the most probable class; rows are put into bins of equal width
    by it, and bins count by their rows.

    :param probabilities: Probability of each class, [N, C].
    :param labels: Class indices, [N].
    :param num_bins: Number of bins between 0 and 1.
    :raises ValueError: If the shapes do not fit, or there is no row.
    """
    of_classes, indices = np.asarray(probabilities, np.float64), np.asarray(labels)
    if of_classes.ndim != 2 or not of_classes.size or indices.shape != of_classes.shape[:1]:
        raise ValueError(
            "probabilities and labels must have shapes [N, C] and [N], got "
            f"{list(of_classes.shape)} and {list(indices.shape)}"
        )
    confidence = of_classes.max(axis=1)
    excess = confidence - (of_classes.argmax(axis=1) == indices)
    bins = np.minimum((confidence * num_bins).astype(int), num_bins - 1)
    return float(np.abs(np.bincount(bins, excess, num_bins)).sum() / len(indices))


def _alike(**named: npt.ArrayLike) -> list[Array]:
    """Arrays of one shape: a [N, 1] and a [N] would silently broadcast to [N, N]."""
    arrays = [np.asarray(values, np.float64) for values in named.values()]
    if len({array.shape for array in arrays}) > 1 or not arrays[0].size:
        shapes = ", ".join(f"{k} {list(v.shape)}" for k, v in zip(named, arrays, strict=True))
        raise ValueError(f"shapes must be the same and not empty, got {shapes}")
    return arrays
