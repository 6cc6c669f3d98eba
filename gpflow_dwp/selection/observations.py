"""What targets were recorded to, and what is odd about them."""

from __future__ import annotations

import math

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data.standardiser import root_mean_square
from gpflow_dwp.likelihoods.named import MOST_NUGGET

__all__ = [
    "check_equal_runs",
    "has_atoms",
    "is_recorded_finely",
    "odd_targets",
    "recorded_steps",
    "shares_of_precision",
    "weights_of_evidence",
]

# So many rows for each value, or so large a share of one value, are worth a word.
_ROWS_OF_A_VALUE = 5
_MOST_VALUES = 20
_SHARE_OF_ONE = 0.25
_SHARE_OF_AN_ATOM = 0.1
_FINE = 0.05
# In median absolute deviations: where outliers are, ten deviations of normal values, and up to
# where rows are as good as others.
_FAR, _NEAR = 15.0, 4.0
# A smaller step, relative to the deviation, is rounding of a computer.
_LEAST_STEP = 1e-6


def recorded_steps(Y: Array) -> Array:
    """Return the step to which each column was recorded, 0 where no value comes twice.

    It is the smallest gap between values: 1 for counts, 0.1 for one decimal. Of a column with two
    values it is their distance.

    >>> import numpy as np
    >>> recorded_steps(np.array([[0.5, 1.0], [0.25, 3.0], [0.1, 1.0]])).tolist()
    [0.0, 2.0]

    :param Y: Observations, [N, P], of which NaN are missing.
    :return: Steps, [P].
    """
    steps = np.zeros(Y.shape[1])
    for index, column in enumerate(Y.T):
        seen = column[~np.isnan(column)]
        values = np.unique(seen)
        if 1 < len(values) < len(seen):
            gaps = np.diff(values)
            gap = gaps.min()
            # Equal values that were scaled may differ in their last digits.
            if gap > _LEAST_STEP * _deviation(seen):
                steps[index] = gap
    return steps


def _deviation(values: Array) -> Array:
    return root_mean_square(values - values.mean(axis=0))


def check_equal_runs(X: Array, Y: Array) -> None:
    """Refuse observations of equal inputs that differ by more than a nugget may explain.

    :param X: Inputs, [N, D].
    :param Y: Observations of unit variance, [N, P].
    :raises ValueError: If two rows differ so.
    """
    order = np.lexsort(X.T)
    equal = (X[order][1:] == X[order][:-1]).all(1)
    gaps = np.abs(Y[order][1:] - Y[order][:-1]).max(1) * equal
    if len(gaps) and gaps.max() > 4.0 * math.sqrt(MOST_NUGGET):
        rows = sorted(order[gaps.argmax() :][:2] + 1)
        raise ValueError(
            "likelihood must not be 'noise_free' where runs of equal inputs differ: rows "
            f"{rows[0]} and {rows[1]} do, by {gaps.max():.3g} standard deviations of the outputs."
        )


def has_atoms(Y: Array, steps: Array) -> bool:
    """Whether many rows have one value of a column that is recorded finely: a mass of its own.

    A warp would be as steep as it may be there, and Student noise as narrow, and both say nothing
    of the other rows.

    :param Y: Observations, [N, P].
    :param steps: To which each column was recorded, [P].
    """
    for column, step in zip(Y.T, steps, strict=True):
        _, counts = np.unique(column, return_counts=True)
        if counts.max() > _SHARE_OF_AN_ATOM * len(column) and step < _FINE * _deviation(column):
            return True
    return False


def is_recorded_finely(Y: Array, steps: Array) -> bool:
    """Whether no column has few values, or many rows at one of them.

    Noise that differs from row to row can be tiny where equal values are, and no density can tell.

    :param Y: Observations, [N, P].
    :param steps: To which each column was recorded, [P].
    """
    return bool(np.all(steps < _FINE * _deviation(Y))) and not has_atoms(Y, steps)


def weights_of_evidence(X: Array, Y: Array, steps: Array, weights: Array | None) -> Array | None:
    """Return how often each row counts where kernel and noise are fitted, [N]; None for once.

    Of rows that are recorded finely, at most once, and copies with the first of them: the evidence
    takes a few equal observations of equal inputs for a proof that there is no noise, and calls all
    else a function that differs at each input.

    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    :param steps: To which each column was recorded, [P].
    :param weights: How often each row counts elsewhere, [N]; None for once.
    """
    if not is_recorded_finely(Y, steps):
        return weights
    both = np.hstack([X, Y])
    _, first, row = np.unique(both, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(X):
        return None if weights is None else np.minimum(weights, 1.0)
    joined = np.zeros(len(X))
    joined[first] = np.minimum(np.bincount(row.reshape(-1), weights), 1.0)
    return joined


def shares_of_precision(Y: Array) -> Array:
    """Guess what noise of rows has of the precision of others, [N]: 1 unless a few are outliers.

    :param Y: Observations, [N, P].
    """
    distance = np.abs(Y - np.median(Y, axis=0))
    reach = np.median(distance, axis=0)
    if not (reach.min() > 0.0 and np.any(distance > _FAR * reach)):
        return np.ones(len(Y))
    shares = (_NEAR * reach / np.maximum(distance, _NEAR * reach)).min(axis=1) ** 2
    return shares if np.mean(shares == 1.0) > 0.5 else np.ones(len(Y))


def odd_targets(y: Array, name: str) -> str | None:
    """Return what a user should know about a target that is treated as a number, if anything.

    :param y: Its values, [N], of which NaN are missing.
    :param name: What the message calls it.
    """
    seen = y[~np.isnan(y)]
    values, counts = np.unique(seen, return_counts=True)
    if len(values) <= _MOST_VALUES and len(seen) >= _ROWS_OF_A_VALUE * len(values):
        return (
            f"{name} has {len(values)} different values in {len(seen)} rows and is treated as a "
            "number recorded to that precision; a classifier, or a likelihood of counts, may suit "
            "it better."
        )
    most = counts.argmax()
    if counts[most] >= max(_SHARE_OF_ONE * len(seen), _ROWS_OF_A_VALUE):
        share = 100.0 * counts[most] / len(seen)
        return (
            f"{name} is {values[most]:g} in {share:.0f}% of {len(seen)} rows, which no model of "
            "numbers here can say; intervals are right on average, not at that value."
        )
    return None
