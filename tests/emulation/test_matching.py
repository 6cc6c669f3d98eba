"""What an observation leaves of the inputs, against volumes and posteriors in closed form."""

from __future__ import annotations

import math

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from exact_process import Exact, one_layer
from scipy.stats import multivariate_normal, qmc

from gpflow_dwp import emulation
from gpflow_dwp.emulation.emulator import as_emulator
from gpflow_dwp.emulation.matching import _coordinates
from gpflow_dwp.emulation.target import Target
from gpflow_dwp.estimator import DeepWishartRegressor

pytestmark = pytest.mark.usefixtures("plain_single_layers")

tfd = tfp.distributions
CUBE = np.array([[0.0, 1.0]] * 4)
CENTRE, RADIUS = np.array([0.3, 0.5, 0.6, 0.2]), 0.05
MATRIX = np.array([[2.0, -1.0], [1.0, 1.0], [0.5, 0.0]])


def ball(X: np.ndarray) -> np.ndarray:
    """3 at the edge of a ball."""
    return 3.0 * np.linalg.norm(X - CENTRE, axis=1) / RADIUS


@pytest.fixture(scope="module")
def linear() -> DeepWishartRegressor:
    X = 3.0 * qmc.LatinHypercube(2, seed=np.random.default_rng(0)).random(20) - 1.0
    return one_layer().fit(X, X @ MATRIX.T + 1.0)


def test_a_small_part_is_found_and_measured() -> None:
    """Catches points that stay where they were found, and shares of levels that do not multiply."""
    found = emulation.sample_plausible(ball, CUBE, 500, seed=1)
    volume = math.pi**2 / 2.0 * RADIUS**4
    assert 0.6 * volume < found.share < 1.6 * volume
    assert (ball(found.points) <= 3.0).all() and len(np.unique(found.points, axis=0)) > 400
    np.testing.assert_allclose(found.points.mean(axis=0), CENTRE, atol=0.006)
    std = RADIUS / math.sqrt(4 + 2)
    np.testing.assert_allclose(found.points.std(axis=0), std, rtol=0.15)
    nothing = emulation.sample_plausible(lambda X: np.full(len(X), 9.0), CUBE)
    assert nothing.share == 0.0 and nothing.points.shape == (0, 4)


def test_figure_shows_least_implausibility_and_depth() -> None:
    """Catches axes that change places, and a share of all points in place of those of a cell."""

    def strip(X: np.ndarray) -> np.ndarray:
        return 3.0 * X[:, 0] / 0.25 + X[:, 1]

    figure = emulation.plot_implausibility(strip, CUBE[:3], resolution=4, num_points=4096)
    panels = np.reshape(figure.axes[:9], (3, 3))
    least, depth = (panels[place].images[0].get_array() for place in ((1, 0), (0, 1)))
    np.testing.assert_allclose(least[0], [0.0, 3.0, 6.0, 9.0], atol=0.3)
    assert depth[0, 0] > 0.9 and (depth[1:] < 0.05).all()
    assert panels[2, 0].images[0].get_array().shape == (4, 4)


def test_outputs_that_were_not_observed_or_that_covary(linear: DeepWishartRegressor) -> None:
    """Catches NaN that rule out everything, variances that are left out, of the observation or of
    the simulator, and ranks or covariances of other outputs."""
    x = np.array([[0.2, 0.4], [1.0, 0.0]])
    mean, std = linear.predict(x, return_std=True)
    z, spread = np.array([1.0, np.nan, 2.0]), np.array([0.5, 0.1, 0.2])
    each = np.abs(z - mean)[:, [0, 2]] / np.sqrt(std**2 + spread**2 + 0.4**2)[:, [0, 2]]
    given = {"observation_std": spread, "discrepancy_std": 0.4}
    for rank, expected in ((1, each.max(axis=1)), (2, each.min(axis=1))):
        found = emulation.implausibility(linear, x, z, rank=rank, **given)
        np.testing.assert_allclose(found, expected)
    C = np.array([[0.3, 9.0, 0.1], [9.0, 9.0, 9.0], [0.1, 9.0, 0.2]])
    found = emulation.implausibility(linear, x, z, covariance=C, **given)
    for value, m, s in zip(found, mean, std, strict=True):
        joint = (C + np.diag(s**2 + spread**2 + 0.4**2))[np.ix_([0, 2], [0, 2])]
        error = (z - m)[[0, 2]]
        np.testing.assert_allclose(value, np.sqrt(error @ np.linalg.solve(joint, error)))
    for wrong, message in (
        ({"rank": 3}, "rank must be at most 2"),
        ({"covariance": np.eye(2)}, "covariance must be .3, 3., got"),
        ({"covariance": np.ones((3, 3)) - np.eye(3)}, "positive semi-definite"),
        ({"covariance": np.eye(3), "rank": 2}, "rank must be at most 1"),
        ({"observation_std": [0.1, 0.2]}, "observation_std must be a number from 0, or 3 such"),
        ({"discrepancy_std": [-0.2, 0.1, 0.0]}, "discrepancy_std must be a number from 0, or 3 s"),
    ):
        with pytest.raises(ValueError, match=message):
            emulation.implausibility(linear, x, z, **wrong)
    with pytest.raises(ValueError, match="3 finite numbers, or NaN"):
        emulation.implausibility(linear, x, [np.inf, 1.0, 1.0])


def test_posterior_of_a_linear_simulator(linear: DeepWishartRegressor) -> None:
    """Catches precision that counts twice, and outputs that were not observed; to 4 errors."""
    prior = tfd.MultivariateNormalDiag(np.array([0.5, 0.2]), np.array([0.3, 0.4]))
    z, C = np.array([2.0, 1.5, np.nan]), np.array([[0.04, 0.03, 0.0], [0.03, 0.09, 0.0], [0, 0, 1]])
    errors = {"observation_std": 0.1, "discrepancy_std": 0.2, "covariance": C}
    steps = {"num_draws": 75, "num_burnin": 50, "num_chains": 8}
    found = emulation.input_posterior(linear, z, prior, **errors, **steps)
    assert found.draws.shape == (8, 75, 2) and (found.r_hat < 1.05).all()
    noise, A = (C + 0.05 * np.eye(3))[:2, :2], MATRIX[:2]
    precision = A.T @ np.linalg.solve(noise, A) + np.diag([0.3**-2, 0.4**-2])
    covariance = np.linalg.inv(precision)
    pull = A.T @ np.linalg.solve(noise, z[:2] - 1.0) + np.array([0.5 / 0.09, 0.2 / 0.16])
    draws = found.draws.reshape(-1, 2)
    error = 4.0 * np.sqrt(np.diag(covariance) / found.effective_size)
    assert (np.abs(draws.mean(axis=0) - covariance @ pull) < error).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.25 * covariance.max())
    with pytest.raises(ValueError, match=r"events \[2\]"):
        emulation.input_posterior(linear, z, tfd.Normal(0.0, 1.0))


def test_chains_start_where_the_observation_leads(linear: DeepWishartRegressor) -> None:
    """Catches chains that begin all over the prior, and coordinates that are as wide as it."""
    prior = tfd.MultivariateNormalDiag(np.zeros(2), np.full(2, 0.5))
    target = Target.of(as_emulator(linear), [2.0, 1.5, np.nan], 0.01, 0.0, None)
    bijector, starts = _coordinates(target, prior, 8, seed=0)
    meets_both = np.linalg.solve(MATRIX[:2], np.array([1.0, 0.5]))
    covariance = np.linalg.inv(MATRIX[:2].T @ MATRIX[:2] / 0.01**2 + np.eye(2) / 0.5**2)
    assert np.linalg.norm(starts - meets_both, axis=1).max() < 5.0 * np.sqrt(covariance.trace())
    root = np.transpose(bijector.forward(np.eye(2)) - bijector.forward(np.zeros([1, 2])))
    np.testing.assert_allclose(root @ root.T, covariance, atol=0.3 * covariance.max())


def test_a_discrepancy_is_a_process_of_the_settings() -> None:
    """Catches settings in the wrong columns, and covariances that are left out or in other units.
    By another route: densities of Kennedy and O'Hagan in NumPy, of an emulator that is not sure."""
    X = qmc.LatinHypercube(3, seed=np.random.default_rng(1)).random(9) * [2.0, 1.0, 3.0]
    y = 40.0 + 10.0 * np.sin(X[:, 0] + X[:, 1]) * X[:, 2]
    fitted = one_layer(kernel="Matern52").fit(X, y)
    known = np.array([[0.1, 0.5], [0.6, 2.0], [1.1, 2.5], [1.9, 0.3]])
    settings = np.insert(known, 1, np.nan, axis=1)
    z, C = np.array([44.0, np.nan, 55.0, 41.0]), 0.1 * np.eye(4) + 0.1
    kernel = gpflow.kernels.SquaredExponential(variance=4.0, lengthscales=[0.7, 1.5])
    given = {"observation_std": 0.5, "covariance": C, "settings": settings}
    prior = tfd.Independent(tfd.Uniform(np.zeros(1), np.ones(1)), 1)
    emulator, theta = as_emulator(fitted), np.array([[0.2], [0.9]])
    target = Target.of(emulator, z, 0.5, 0.0, C, settings=settings, discrepancy=kernel)
    found = target.log_density(theta)
    exact = Exact(fitted, X, y)
    for value, density in zip(theta[:, 0], found, strict=True):
        mean, joint = exact(np.insert(known, 1, value, axis=1)[[0, 2, 3]])
        joint += (exact.scale**2 * exact.noise + 0.25) * np.eye(3)
        joint += (C + kernel(known).numpy())[np.ix_([0, 2, 3], [0, 2, 3])]
        expected = multivariate_normal(mean, joint).logpdf(z[[0, 2, 3]])
        np.testing.assert_allclose(density, expected, rtol=1e-5)
    for wrong in (settings[:, :2], np.where(np.isnan(settings), 1.0, settings)):
        with pytest.raises(ValueError, match="settings must have 3 columns"):
            emulation.input_posterior(fitted, z, prior, **{**given, "settings": wrong})
    with pytest.raises(ValueError, match="settings must be given with a discrepancy"):
        emulation.input_posterior(fitted, 1.0, prior, discrepancy=kernel)
