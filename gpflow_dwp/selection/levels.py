"""Categories among standardised inputs, and where the points of their levels start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.kernels import LevelsMatern52
from gpflow_dwp.selection.starts import Start

__all__ = ["LEVELS", "RADII", "categories_of", "with_points"]

LEVELS = LevelsMatern52.__name__
RADII = 0.5, 1.0
"""Of the half circles on which points start."""
# Up to three levels lengthscales of indicators say as much as points do.
_FEWEST_LEVELS = 4
# All coordinates are positive, as lengthscales are.
_LEAST = 0.3


def categories_of(X: Array) -> tuple[int, ...]:
    """Find columns next to each other of which one is above its least value in each row.

    >>> categories_of(np.array([[0.3, 1, 0, 0, 0], [0.1, 0, 1, 0, 0], [0.2, 0, 0, 1, 0]] * 2))
    (0, 0, 0, 0, 0)
    >>> categories_of(np.hstack([np.arange(8.0)[:, None], np.tile(np.eye(4), (2, 1))]))
    (0, 1, 1, 1, 1)

    :param X: Inputs, [N, D].
    :return: Of each input 0, or the number of the category that it is an indicator of, [D]; of
        categories with four levels or more.
    """
    num_inputs = X.shape[1]
    is_on, found = _is_on(X), np.zeros(num_inputs, int)
    num_values = np.array([len(np.unique(column)) for column in X.T])
    begin = 0
    while begin < num_inputs:
        end, count = begin, np.zeros(len(X), int)
        while end < num_inputs and num_values[end] == 2 and (count + is_on[:, end]).max() == 1:
            count += is_on[:, end]
            end += 1
        if end - begin >= _FEWEST_LEVELS and count.all():
            found[begin:end] = found.max() + 1
        begin = max(end, begin + 1) if count.all() else begin + 1
    return tuple(found.tolist())


def _is_on(X: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(X - X.min(axis=0) > 0.0)


def with_points(
    start: Start, X: Array, Y: Array, categories: tuple[int, ...], radius: float
) -> Start:
    """Put the levels of each category on half a circle, in the order of their mean observations.

    :param start: With a Matérn 5/2 kernel that has a lengthscale for each input.
    :param X: Standardised inputs, [N, D].
    :param Y: Observations, [N, P].
    :param categories: As :func:`categories_of` finds them, there or in more rows.
    :param radius: Of the half circles, in units of lengthscales.
    """
    (part,), second = start.kernel, []
    of_inputs = np.array(part.lengthscales)
    for category in range(1, max(categories) + 1):
        columns = np.flatnonzero(np.array(categories) == category)
        is_on = _is_on(X[:, columns])
        means = (is_on.T @ Y) / np.maximum(is_on.sum(axis=0), 1)[:, None]
        directions, *_ = np.linalg.svd(means - means.mean(axis=0))
        angles = np.pi * np.argsort(np.argsort(directions[:, 0])) / (len(columns) - 1)
        points = radius * np.array([1.0 + np.cos(angles), np.sin(angles)]) + _LEAST
        gaps = np.ptp(X[:, columns], axis=0)
        of_inputs[columns], other = np.where(gaps > 0.0, gaps, 1.0) / points
        second.append(other)
    kernel = part._replace(
        kind=LevelsMatern52,
        lengthscales=np.concatenate([of_inputs, *second]),
        categories=categories,
    )
    return start.apart(name=LEVELS, kernel=(kernel,))
