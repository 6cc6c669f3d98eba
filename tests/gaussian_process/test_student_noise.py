"""Student's noise, and the factors of precision of rows."""

from __future__ import annotations

import gpflow
import numpy as np

from gpflow_dwp.gaussian_process.student_noise import fit_student_noise, precisions_of_all
from gpflow_dwp.kernels.values import values_of
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
from gpflow_dwp.neighbours import nearest_others

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (300, 2))
F = np.sin(X[:, :1]) + X[:, 1:]
NEAR = np.sin(X[:15, :1]) + 0.1 * RNG.standard_normal((15, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, 15)


def test_precisions_of_rows_that_were_not_fitted_to_are_their_posterior_means() -> None:
    """Catches an outlier that is taken for a signal, and weights of another row."""
    seen, (row, far) = np.arange(13), (13, 14)
    kernel = gpflow.kernels.Matern52(1.1, [0.8, 3.0])
    likelihood = WarpedStudentT(SinhArcsinh(), 0.02, 4.0)
    factors = RNG.uniform(0.5, 1.5, 13)
    x, y = X[:15], NEAR + 5.0 * (np.arange(15) == far)[:, None]
    found = precisions_of_all((x, y, WEIGHTS), kernel, likelihood, seen, factors)
    np.testing.assert_array_equal(found[:13], factors)
    assert found[far] < 0.01 < 0.3 < found[row]
    for new in (row, far):
        rows = [*seen, new]
        K, noise = kernel(x[rows]).numpy(), 0.02 / (WEIGHTS[rows] * found[rows])
        gain = np.linalg.solve(K + np.diag(noise), K[:, -1])
        mean, variance = gain @ y[rows, 0], K[-1, -1] - gain @ K[:, -1]
        square = (y[new, 0] - mean) ** 2 + variance
        np.testing.assert_allclose(found[new], 5.0 / (4.0 + square / 0.02), rtol=1e-3)


def test_tails_are_told_from_gaussian_noise() -> None:
    """Catches factors of other rows, and a variance or degrees of freedom that run away."""
    kernel, places = gpflow.kernels.SquaredExponential(1.5, [0.5, 4.0]), np.arange(300)
    near = np.column_stack([nearest_others(X / [0.5, 4.0], places, 30), places])
    noise, given = 0.2 * RNG.standard_normal((300, 1)), (values_of(kernel), 0.1, near)
    variance, df, _ = fit_student_noise(X, F + noise, np.ones(300), *given)
    assert df > 6.0 and 0.5 * 0.04 < variance < 1.5 * 0.04
    noise[:15] += 4.0
    variance, df, factors = fit_student_noise(X, F + noise, np.ones(300), *given)
    assert df < 5.0 and 0.25 * 0.04 < variance < 1.5 * 0.04
    assert factors[:15].max() < 0.1 < 0.5 < np.median(factors)
