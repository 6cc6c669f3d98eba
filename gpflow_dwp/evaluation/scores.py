"""How well predictions do, in the units of the targets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.data.standardiser import root_mean_square

__all__ = ["Scores", "expected_calibration_error"]


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


def expected_calibration_error(
    probabilities: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
    """Mean distance of confidence from accuracy (Guo, Pleiss, Sun and Weinberger, 2017, eq. 3).

    Confidence is the probability of the most probable class; rows are put into bins of equal width
    by it, and bins count by their rows.

    :param probabilities: Probability of each class, [N, C].
    :param labels: Class indices, [N].
    :param num_bins: Number of bins between 0 and 1.
    """
    of_classes, indices = np.asarray(probabilities, np.float64), np.asarray(labels)
    confidence = of_classes.max(axis=1)
    excess = confidence - (of_classes.argmax(axis=1) == indices)
    bins = np.minimum((confidence * num_bins).astype(int), num_bins - 1)
    return float(np.abs(np.bincount(bins, excess, num_bins)).sum() / len(indices))
