"""The nearest rows, beside all distances."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from gpflow_dwp.neighbours import nearest, nearest_before, nearest_others

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((150, 3))
ROWS[40:44] = ROWS[40]  # equal ones


def test_nearest_are_those_of_least_distance() -> None:
    """Catches another order, and a row that counts as its own neighbour."""
    points = RNG.standard_normal((20, 3))
    np.testing.assert_array_equal(nearest(ROWS, points, 7), cdist(points, ROWS).argsort()[:, :7])
    chosen = np.array([0, 43, 40, 149])
    found = nearest_others(ROWS, chosen, 3)
    assert not np.any(found == chosen[:, None])
    apart = np.where(np.arange(150) == chosen[:, None], np.inf, cdist(ROWS[chosen], ROWS))
    np.testing.assert_allclose(np.take_along_axis(apart, found, 1), np.sort(apart)[:, :3])


def test_nearest_before_are_of_those_that_precede() -> None:
    """Catches a row that comes later, one that is missed, and too few where there are more."""
    chosen = np.array([0, 1, 5, 8, 63, 64, 149])
    found = nearest_before(ROWS, chosen, 8)
    apart = cdist(ROWS[chosen], ROWS)
    for row, near, distance in zip(chosen, found, apart, strict=True):
        count = min(8, row)
        assert np.all(near[:count] < row) and np.all(near[count:] == -1)
        np.testing.assert_allclose(distance[near[:count]], np.sort(distance[:row])[:count])
