"""Evidence of Gaussian processes, and its gradient."""

from __future__ import annotations

import itertools
from typing import Any

import gpflow
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gpflow_dwp.gaussian_process import Evidence
from gpflow_dwp.gaussian_process.covariances import covariances_of
from gpflow_dwp.kernels import LevelsMatern52
from gpflow_dwp.kernels.values import Part, parts_of
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.models.named_kernels import make_kernels, positive_by_exp
from gpflow_dwp.neighbours import nearest_before

RNG = np.random.default_rng(0)
N, D, P = 25, 3, 2
X = RNG.standard_normal((N, D))
Y = np.round(np.exp(0.5 * X[:, :1] + 0.3 * RNG.standard_normal((N, P))), 1)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
PRECISIONS = RNG.uniform(0.5, 1.5, N)
WARP = {"location": 0.2, "scale": 0.9, "skewness": 0.1, "tailweight": 0.8, "shift": 0.3}


def preceding(size: int, chosen: np.ndarray | None = None) -> np.ndarray:
    """Rows with the nearest of those that precede each, and itself last."""
    chosen = np.arange(N) if chosen is None else chosen
    return np.column_stack([nearest_before(X, chosen, size), chosen])


def make(kernel: str, likelihood: str, step: float, *, ard: bool = True, **of: Any) -> Evidence:
    noise = gpflow.likelihoods.Gaussian(0.1)
    if likelihood != "gaussian":
        noise = WarpedGaussian(SinhArcsinh(P, **WARP), 0.1)
    if likelihood == "student_t":
        noise = WarpedStudentT.of(noise)
    noise = positive_by_exp(noise)
    precisions = PRECISIONS if likelihood == "student_t" else None
    [of_inputs] = make_kernels(kernel, 1, D, 2.4)
    for part in parts_of(of_inputs):
        part.variance.assign(1.3 * part.variance)
        if not ard and hasattr(part, "lengthscales"):
            part.lengthscales = gpflow.Parameter(2.4, transform=part.lengthscales.transform)
    steps = np.full(P, step)
    rows = of.get("inducing"), of.get("neighbours")
    return Evidence(X, Y, WEIGHTS, steps, of_inputs, noise, precisions, 1e-4, *rows)


OF_KERNELS = "SquaredExponential", "Matern32", "RationalQuadratic", "SeparableMatern52"
OF_KERNELS += ("AdditiveMatern52",)
OF_NOISE = "gaussian", "warped", "student_t"
OF_ROWS: tuple[tuple[float, bool, dict[str, np.ndarray]], ...] = (
    (0.0, True, {}),
    (0.1, False, {"inducing": X[:7] + 0.1}),
    (0.1, True, {"neighbours": preceding(5, np.arange(0, N, 2))}),
)


@pytest.mark.parametrize(("kernel", "noise"), [*itertools.product(range(5), range(3))])
def test_gradient_is_that_of_finite_differences(kernel: int, noise: int) -> None:
    """Catches any part of the gradient that is not the value's. A kernel is with each noise and
    each of the rows once, and these two are with each other. Each of the random directions has all
    parameters."""
    step, ard, of = OF_ROWS[(kernel + noise) % 3]
    evidence = make(OF_KERNELS[kernel], OF_NOISE[noise], step, ard=ard, **of)
    vector = evidence.start()
    _, gradient = evidence(vector)
    directions = np.random.default_rng(0).standard_normal((4, len(vector)))
    differences = [
        (evidence(vector + h)[0] - evidence(vector - h)[0]) / 2e-5 for h in 1e-5 * directions
    ]
    atol = 1e-6 * np.abs(gradient).max()
    np.testing.assert_allclose(directions @ gradient, differences, atol=atol)


@pytest.mark.parametrize("of", ["themselves", "others", "batches"])
def test_gradient_of_levels_is_that_of_finite_differences(of: str) -> None:
    """Catches a lengthscale whose coordinate is another's, and inputs of which it is not."""
    rng = np.random.default_rng(0)
    kernel = LevelsMatern52(1.3, rng.uniform(0.5, 2.0, 3 + 2), [1, 0, 1])
    near = X[:, None] + 0.1 * rng.standard_normal((N, 4, D))
    pairs = {"others": [(X[:3], X[:3]), (X[:3], X)], "batches": [(near, near)]}
    covariances = covariances_of(kernel, pairs.get(of, [(X, X)]))
    vector = covariances.start()
    bars = [rng.standard_normal(np.shape(each)) for each in covariances.blocks(vector)]
    gradient = covariances.gradient(bars)

    def total(values: np.ndarray) -> float:
        return sum(map(np.vdot, bars, covariances.blocks(values)))

    differences = [total(vector + h) - total(vector - h) for h in 1e-5 * np.eye(len(vector))]
    atol = 1e-6 * np.abs(gradient).max()
    np.testing.assert_allclose(gradient, np.array(differences) / 2e-5, atol=atol)


def test_a_sum_with_a_part_without_a_closed_form_is_taken_as_it_is() -> None:
    """Catches parts whose columns are chosen twice, and limits of variances on other parameters."""
    kernel = gpflow.kernels.Matern52() + gpflow.kernels.RationalQuadratic(active_dims=[2])
    covariances = covariances_of(kernel, [(X, X)])
    np.testing.assert_allclose(covariances.blocks(covariances.start())[0], kernel(X), rtol=1e-12)
    assert np.isinf(covariances.limits()).all()


def test_value_is_the_density_of_the_warped_observations() -> None:
    """Catches a covariance, Jacobian or weight that is left out."""
    evidence = make("Matern52", "warped", 0.0)
    evidence.weights, evidence.jitter = np.ones(N), 0.0
    likelihood = evidence.likelihood
    assert isinstance(likelihood, WarpedGaussian)
    covariance = evidence.kernel(X).numpy() + 0.1 * np.eye(N)
    warped, slope = likelihood.warp.forward(Y).numpy(), likelihood.warp.log_derivative(Y).numpy()
    densities = [multivariate_normal(np.zeros(N), covariance).logpdf(z) for z in warped.T]
    expected = slope.sum() + sum(densities)
    vector = evidence.start()
    np.testing.assert_allclose(evidence(vector)[0] - evidence.log_prior(vector), expected)


@pytest.mark.parametrize("likelihood", ["gaussian", "warped", "student_t"])
def test_given_all_that_precede_it_is_the_evidence(likelihood: str) -> None:
    """Catches rows that count twice or not at all, and a chain rule that is not one."""
    exact = make("Matern52", likelihood, 0.1)
    other = make("Matern52", likelihood, 0.1, neighbours=preceding(N - 1))
    vector = exact.start()
    (value, gradient), (expected, by_all) = other(vector), exact(vector)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, by_all, rtol=1e-8, atol=1e-8)


def test_given_neighbours_it_is_the_density_of_each_row_given_these() -> None:
    """Catches neighbours of another row, beside conditionals that are taken one by one."""
    chosen = np.array([0, 3, 11, 24])
    neighbours = preceding(5, chosen)
    evidence = make("Matern32", "gaussian", 0.0, neighbours=neighbours)
    evidence.weights, evidence.jitter = np.ones(N), 0.0
    K = evidence.kernel(X).numpy() + 0.1 * np.eye(N)
    expected = 0.0
    for row, near in zip(chosen, neighbours[:, :-1], strict=True):
        near = near[near >= 0]
        b = np.linalg.solve(K[np.ix_(near, near)], K[near, row])
        variance = K[row, row] - K[row, near] @ b
        expected += norm.logpdf(Y[row], b @ Y[near], np.sqrt(variance)).sum()
    np.testing.assert_allclose(evidence(evidence.start())[0], expected, rtol=1e-9)


def test_sparse_value_is_that_of_gpflow() -> None:
    """Catches a wrong bound, beside one that is written by others."""
    evidence = make("Matern52", "gaussian", 0.0, inducing=X[:7])
    evidence.weights, evidence.jitter = np.ones(N), 0.0
    vector = evidence.start()
    noise = float(np.exp(vector[-1]))
    expected = gpflow.models.SGPR((X, Y), evidence.kernel, X[:7], noise_variance=noise).elbo()
    np.testing.assert_allclose(evidence(vector)[0], expected, atol=1e-3)  # its jitter


@pytest.mark.parametrize("likelihood", ["gaussian", "warped"])
def test_no_more_than_all_probability_is_gained_at_a_tie(likelihood: str) -> None:
    """Catches evidence without a limit as the noise, or a warp's scale, goes to zero."""
    noise = gpflow.likelihoods.Gaussian(1e-4)
    if likelihood == "warped":
        noise = WarpedGaussian(SinhArcsinh(scale=1e-9, tailweight=0.1), 1e-4)
    noise = positive_by_exp(noise)
    same = np.zeros((N, 1))
    kernel = (Part(gpflow.kernels.SquaredExponential, 1e-4, np.full(D, 2.4)),)
    evidence = Evidence(X, same, np.ones(N), np.array([0.5]), kernel, noise)
    vector = evidence.start()
    # √12 / √(2π) / h is the most that the approximation of a cell's probability allows.
    most = N * np.log(np.sqrt(12.0 / (2.0 * np.pi)) / 0.5)
    assert evidence(vector)[0] - evidence.log_prior(vector) < most
