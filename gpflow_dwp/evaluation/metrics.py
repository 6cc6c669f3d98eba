"""Scores of predictions. Give them raw units and they are in raw units.

A density scales with the unit: in standardised units it is
:attr:`gpflow_dwp.data.Standardiser.log_density_offset` away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.evaluation._validation import check_mixture
from gpflow_dwp.evaluation.mixture import mixture_log_density
from gpflow_dwp.optional import import_optional

__all__ = [
    "BaselineScores",
    "accuracy",
    "interval_coverage",
    "linear_regression_baseline",
    "mean_log_density",
    "mixture_crps",
    "rmse",
]

Array = npt.NDArray[np.float64]

_MAX_PAIRS = 2**20


def rmse(y_true: npt.ArrayLike, mean: npt.ArrayLike) -> float:
    """Root of the mean squared error, in the unit of the target.

    :param y_true: Targets, [N] or [N, 1].
    :param mean: Predicted means, of the same shape.
    :raises ValueError: If the shapes differ.
    """
    truth, predicted = _alike(y_true=y_true, mean=mean)
    return float(np.sqrt(np.mean(np.square(truth - predicted))))


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
    scoringrules = import_optional("scoringrules", "cli")
    truth = _vector(y_true)
    mean, deviation = check_mixture(means, variances)
    if len(truth) != mean.shape[1]:
        raise ValueError(f"y_true must have shape [{mean.shape[1]}], got {list(truth.shape)}")
    # Pairs of components are formed, S² for each point: a block of points at a time.
    blocks = range(0, len(truth), max(1, _MAX_PAIRS // len(mean) ** 2))
    total = 0.0
    for start in blocks:
        part = slice(start, start + blocks.step)
        parts = truth[part], mean.T[part], deviation.T[part]
        total += float(np.sum(scoringrules.crps_mixnorm(*parts, backend="numpy")))
    return total / len(truth)


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


class BaselineScores(NamedTuple):
    """Scores that a model has to beat.

    :param rmse: Root mean squared error on test rows, in the unit of the target.
    :param mean_log_density: Mean log density of the test targets, per unit of the target.
    """

    rmse: float
    mean_log_density: float


def linear_regression_baseline(
    train_X: npt.ArrayLike, train_Y: npt.ArrayLike, test_X: npt.ArrayLike, test_Y: npt.ArrayLike
) -> BaselineScores:
    """Scores of ordinary least squares with normal residuals.

    The residual variance s² is that of the training rows with N - rank - 1 degrees of freedom. The
    predictive variance at x adds the uncertainty of the coefficients,
    s² (1 + 1/N + (x - x̄)ᵀ (Xcᵀ Xc)⁺ (x - x̄)), with Xc the centred training inputs.

    :param train_X: Training inputs, [N, D].
    :param train_Y: Training targets, [N, 1].
    :param test_X: Test inputs, [T, D].
    :param test_Y: Test targets, [T, 1].
    :raises ValueError: If there are too few training rows for a residual variance.
    :raises ImportError: If scikit-learn is not installed.
    """
    linear_model = import_optional("sklearn.linear_model", "cli")
    inputs, new = np.asarray(train_X, np.float64), np.asarray(test_X, np.float64)
    targets, truth = _vector(train_Y), _vector(test_Y)
    model = linear_model.LinearRegression().fit(inputs, targets)
    # In columns of unit scale, so that the unit of an input does not decide on the rank.
    centre, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale[scale == 0.0] = 1.0
    _, singular, directions = np.linalg.svd((inputs - centre) / scale, full_matrices=False)
    kept = singular > singular.max() * max(inputs.shape) * np.finfo(np.float64).eps
    freedom = len(inputs) - kept.sum() - 1
    if freedom < 1:
        raise ValueError(
            f"{len(inputs)} training rows are too few for {kept.sum()} independent columns, "
            "an intercept and a residual variance"
        )
    residual = np.square(targets - model.predict(inputs)).sum() / freedom
    # An exact fit has no density; rounding is the least that any residual has.
    residual = max(residual, np.finfo(np.float64).eps * targets.var())
    scores = ((new - centre) / scale) @ directions[kept].T / singular[kept]
    variance = residual * (1.0 + 1.0 / len(inputs) + np.square(scores).sum(axis=1))
    mean = model.predict(new)
    return BaselineScores(
        rmse(truth, mean), mean_log_density(truth, mean[None, :], variance[None, :])
    )


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
