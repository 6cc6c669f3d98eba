"""Gaussian processes that are fitted in seconds."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.gaussian_process import fit_gaussian_process
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (40, 2))
Y = np.sinh(np.sin(2.0 * X[:, :1]) + 0.1 * RNG.standard_normal((40, 1)))


WEIGHTS = 0.5 * (np.arange(40.0) % 3)


@pytest.mark.parametrize(
    ("num_inducing", "warp", "data", "jitter"),
    [
        (None, False, (X, Y), 1e-9),
        (None, False, (X, Y), 1e-5),
        (10, True, (X, Y), 1e-9),
        (None, True, (X, Y, WEIGHTS), 1e-9),
        (10, False, (X, Y, WEIGHTS), 1e-9),
    ],
)
def test_the_bound_is_that_of_a_layer(
    num_inducing: Any, warp: bool, data: Any, jitter: float
) -> None:
    """Catches a warp without its Jacobian, a weight that is not a number of rows, parameters that
    are not where the fit ended, and a jitter that costs nothing."""
    kernel = gpflow.kernels.Matern52(lengthscales=[1.0, 1.0])
    likelihood = WarpedGaussian(SinhArcsinh(), 0.1) if warp else gpflow.likelihoods.Gaussian(0.1)
    Z = None if num_inducing is None else X[:num_inducing]
    fitted = fit_gaussian_process(data, kernel, likelihood, Z, jitter=jitter, max_iterations=20)
    parts = {"kernel": [kernel], "likelihood": likelihood, "num_inducing": num_inducing or len(X)}
    model = build_deep_wishart_process(data, 1, output="regression", jitter=jitter, **parts)
    if Z is not None:
        model.inducing_variable.Z.assign(Z)
    model.output_layer.noise_variance.assign(likelihood.variance)
    np.testing.assert_allclose(fitted.elbo, model.elbo(data, seed=0), atol=0.01)
    assert fitted.trace[-1] > fitted.trace[0]


def test_what_fails_leaves_the_parameters_of_before() -> None:
    """Catches a fit that ends in a covariance without a factor, and passes that on."""
    kernel = gpflow.kernels.Matern52(lengthscales=[1.0, 1.0])
    likelihood = gpflow.likelihoods.Gaussian(0.1, variance_lower_bound=1e-30)
    doubled = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    fitted = fit_gaussian_process(doubled, kernel, likelihood)
    assert np.isfinite(fitted.trace).all()
    assert all(np.isfinite(each.numpy()).all() for each in kernel.trainable_parameters)


def test_noise_below_rounding_is_no_fit() -> None:
    """Catches a degenerate candidate that is taken for the best, or that ends the search."""
    for variance in (1e14, 1e40):
        kernel = gpflow.kernels.RationalQuadratic(variance=variance, lengthscales=10.0)
        noise = gpflow.likelihoods.Gaussian(1e-5)
        fitted = fit_gaussian_process((X, Y), kernel, noise, max_iterations=0)
        assert fitted.elbo == -np.inf
