"""Gaussian processes that are fitted in seconds, and draws of their kernels' values."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.gaussian_process import Evidence, fit_gaussian_process
from gpflow_dwp.gaussian_process.kernel_posterior import draw_kernel_values
from gpflow_dwp.kernels.values import values_of
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


def test_draws_have_the_moments_of_their_posterior() -> None:
    """Catches weights without the proposals' density, and moves that do not keep the posterior. By
    another route: sums over a grid of both values, by the definition of the density."""
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    Y = np.sin(2.0 * X)
    kernel, likelihood = gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian(1e-2)
    gpflow.set_trainable(likelihood, False)
    fitted = fit_gaussian_process((X, Y), kernel, likelihood)
    values = values_of(fitted.kernel)
    evidence = Evidence(X, Y, np.ones(12), np.zeros(1), values, likelihood, jitter=0.0)
    *_, found = draw_kernel_values(evidence, 120, seed=0)
    mode, noise = evidence.start()[:2], float(likelihood.variance.numpy())
    steps = np.linspace(-1.5, 6.0, 60)
    grid = np.stack(np.meshgrid(steps, 2.0 * steps, indexing="ij"), axis=-1).reshape(-1, 2)
    scales, variances = np.exp(mode + grid).T[..., None, None]
    K = variances * np.exp(-0.5 * (X - X.T) ** 2 / scales**2) + noise * np.eye(12)
    logs = -0.5 * (np.linalg.slogdet(K)[1] + (Y.T @ np.linalg.solve(K, Y[None]))[:, 0, 0])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    deviation = np.sqrt(weights @ (grid - mean) ** 2)
    assert np.all(np.abs(found.mean(0) - mean) < 0.3 * deviation)
    np.testing.assert_allclose(found.std(0), deviation, rtol=0.3)
