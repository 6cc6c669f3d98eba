"""Predictions of rows that a Gaussian process had not seen."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp.gaussian_process.predictions import leave_out, predict, predict_given, sites, solved
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (15, 2))
Y = np.sin(X[:, :1]) + 0.1 * RNG.standard_normal((15, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, 15)
KERNEL = gpflow.kernels.Matern52(lengthscales=[1.0, 0.7])
WARPED = WarpedGaussian(SinhArcsinh(tailweight=0.8, scale=0.5), 0.05)


@pytest.mark.parametrize("likelihood", [gpflow.likelihoods.Gaussian(0.05), WARPED], ids=type)
def test_of_a_process_it_is_that_of_one_without_the_row(likelihood: Any) -> None:
    """Catches noise of the row that is forgotten or counted twice, and weights that are not its.
    The same row's prediction, from the others alone, is held against it."""
    Z, noise = sites(Y, WEIGHTS, likelihood)
    means, variances = leave_out(X, Z, noise, KERNEL)
    for row in (0, 7):
        others = np.arange(15) != row
        K = KERNEL(X[others]).numpy() + np.diag(0.05 / WEIGHTS[others])
        k = KERNEL(X[others], X[[row]]).numpy()
        mean = k.T @ np.linalg.solve(K, Z[others])
        variance = KERNEL(X[[row]]).numpy()[0] - k[:, 0] @ np.linalg.solve(K, k)
        np.testing.assert_allclose(means[row], mean[0], rtol=1e-8)
        np.testing.assert_allclose(variances[row], variance, rtol=1e-8)
        of_others = solved(X[others], Z[others], noise[others], KERNEL)
        unseen = predict(X[others], KERNEL, *of_others, X[[row, row]])
        np.testing.assert_allclose(unseen[0], np.repeat(mean, 2, 0), rtol=1e-8)
        np.testing.assert_allclose(unseen[1], np.repeat(variance, 2), rtol=1e-8)


def test_by_neighbours_it_is_that_of_a_process_of_these_rows() -> None:
    """Catches rows, noise or weights of others, and own ones among the neighbours."""
    Z, noise = sites(Y, WEIGHTS, WARPED)
    for near in ([3, 4, 9, 0], [n for n in range(15) if n != 6]):
        rows = [*near, 6]
        found = predict_given(X, Z, noise, KERNEL, np.array([rows, rows[::-1]]))
        expected = leave_out(X[rows], Z[rows], noise[rows], KERNEL)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[0], other[-1], rtol=1e-9)
