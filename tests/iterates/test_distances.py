from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from gpflow_dwp.iterates import relative_frobenius_distance, wasserstein_distance


def _covariance(seed: int, size: int = 4) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((size, 2 * size))
    return root @ root.T


def test_wasserstein_distance_is_the_formula_with_matrix_roots() -> None:
    first, second = _covariance(0), _covariance(1)
    means = np.random.default_rng(2).standard_normal((2, 4))

    root = scipy.linalg.sqrtm(first)
    cross = scipy.linalg.sqrtm(root @ second @ root)
    square = np.sum((means[0] - means[1]) ** 2) + np.trace(first + second - 2.0 * cross)
    distance = wasserstein_distance((means[0], first), (means[1], second))
    np.testing.assert_allclose(distance, np.sqrt(square))
    np.testing.assert_allclose(
        wasserstein_distance((means[1], second), (means[0], first)), distance
    )


def test_relative_frobenius_distance() -> None:
    truth = _covariance(0)

    np.testing.assert_allclose(relative_frobenius_distance(truth, 1.25 * truth), 0.25)
    with pytest.raises(ValueError, match=r"estimate must have shape \(4, 4\), as truth"):
        relative_frobenius_distance(truth, truth[0])
    with pytest.raises(ValueError, match="truth must not be zero"):
        relative_frobenius_distance(np.zeros(2), np.ones(2))


def test_what_has_no_wasserstein_distance() -> None:
    good = (np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match="means must be vectors of one length"):
        wasserstein_distance(good, (np.zeros(3), np.eye(3)))
    with pytest.raises(ValueError, match=r"covariances must have shape \(2, 2\)"):
        wasserstein_distance(good, (np.zeros(2), np.eye(3)))
    with pytest.raises(ValueError, match="first must have a positive definite covariance"):
        wasserstein_distance((np.zeros(2), np.diag([1.0, -1.0])), good)
