"""Scores of predictions. Give them raw units and they are in raw units.

A density scales with the unit: in standardised units it is
:attr:`gpflow_dwp.data.Standardiser.log_density_offset` away.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.mixture import mixture_crps_of_each, mixture_log_density

__all__ = [
    "accuracy",
    "expected_calibration_error",
    "explained_variance",
    "interval_coverage",
    "mean_log_density",
    "mixture_crps",
    "rmse",
]


def rmse(y_true: npt.ArrayLike, mean: npt.ArrayLike) -> float:
    """Root of the mean squared error, in the unit of the target.

    :param y_true: Targets, [N] or [N, 1].
    :param mean: Predicted means, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, predicted = _alike(y_true=y_true, mean=mean)
    return float(np.sqrt(np.mean(np.square(truth - predicted))))


def explained_variance(y_true: npt.ArrayLike, mean: npt.ArrayLike) -> float:
    """R²: the share of the targets' variance that is explained, 1 at most; NaN of equal targets.

    :param y_true: Targets, [N] or [N, 1].
    :param mean: Predicted means, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, predicted = _alike(y_true=y_true, mean=mean)
    if truth.min() == truth.max():  # which rounding may give a variance
        return float("nan")
    return 1.0 - float(np.mean(np.square(truth - predicted))) / float(np.var(truth))


def mean_log_density(
    y_true: npt.ArrayLike, means: npt.ArrayLike, variances: npt.ArrayLike
) -> float:
    """Mean log density of the targets under a mixture of normals: higher is better.

    :param y_true: Targets, [N].
    :param means: Means of the components, [S, N].
    :param variances: Variances of the components, [S, N].
    :raises ValueError: If the shapes do not fit or a variance is not positive.
    """
    return float(np.mean(mixture_log_density(_vector(y_true), means, variances)))


def mixture_crps(y_true: npt.ArrayLike, means: npt.ArrayLike, variances: npt.ArrayLike) -> float:
    """Mean continuous ranked probability score, in the unit of the target: lower is better.

    Exact for a mixture of normals. For S = 1 and a vanishing variance it is the absolute error.

    :param y_true: Targets, [N].
    :param means: Means of the components, [S, N].
    :param variances: Variances of the components, [S, N].
    :raises ValueError: If the shapes do not fit or a variance is not positive.
    :raises ImportError: If scoringrules is not installed.
    """
    return float(np.mean(mixture_crps_of_each(_vector(y_true), means, variances)))


def interval_coverage(y_true: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Share of the targets within their intervals, ends included.

    :param y_true: Targets, [N] or [N, 1].
    :param lower: Lower ends, of the same shape.
    :param upper: Upper ends, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, low, high = _alike(y_true=y_true, lower=lower, upper=upper)
    return float(np.mean((low <= truth) & (truth <= high)))


def accuracy(y_true: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Share of the labels that are predicted.

    :param y_true: Class indices, [N] or [N, 1].
    :param predicted: Predicted class indices, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, guess = _alike(y_true=y_true, predicted=predicted)
    return float(np.mean(truth == guess))


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


def _vector(values: npt.ArrayLike) -> Array:
    """[N] from [N] or [N, 1]."""
    array = np.asarray(values, np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"targets must have shape [N] or [N, 1], got {list(array.shape)}")
    return array


def _alike(**named: npt.ArrayLike) -> list[Array]:
    """Arrays of one shape: a [N, 1] and a [N] would silently broadcast to [N, N]."""
    arrays = [np.asarray(values, np.float64) for values in named.values()]
    if len({array.shape for array in arrays}) > 1 or not arrays[0].size:
        shapes = ", ".join(f"{k} {list(v.shape)}" for k, v in zip(named, arrays, strict=True))
        raise ValueError(f"shapes must be the same and not empty, got {shapes}")
    return arrays
