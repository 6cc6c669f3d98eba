"""Models of simulators, whose runs have no noise."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from exact_process import Exact, one_layer

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.likelihoods import WarpedGaussian
from gpflow_dwp.likelihoods.named import is_noise_free, name_of_likelihood
from gpflow_dwp.models.named_kernels import kernel_name

pytestmark = pytest.mark.usefixtures("plain_single_layers")

RNG = np.random.default_rng(0)


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * np.pi * X[:, 0]) * np.exp(X[:, 1])


def fit(X: np.ndarray, y: np.ndarray) -> DeepWishartRegressor:
    """Of a mean function, beside which there is no warp."""
    return one_layer(mean_function=gpflow.functions.Zero()).fit(X, y)


def test_runs_are_met_and_deviations_are_those_of_an_exact_process() -> None:
    """Catches a nugget that stays large, variances lost to rounding, and draws that fail by it."""
    X, points = RNG.random((80, 2)), RNG.random((200, 2))
    y = smooth(X)
    emulator = fit(X, y)
    assert np.abs(emulator.predict(X) - y).max() < 1e-3 * y.std()
    mean, deviation = emulator.predict(points, return_std=True)
    _, without = emulator.predict(points, return_std=True, include_noise=False)
    exact = Exact(emulator, X, y)
    (expected, covariance), noise = exact(points), y.var() * exact.noise
    np.testing.assert_allclose(mean, expected, atol=2e-4 * y.std())
    np.testing.assert_allclose(deviation, np.sqrt(np.diag(covariance) + noise), rtol=0.1)
    np.testing.assert_allclose(deviation**2 - without**2, noise, rtol=1e-3)
    assert name_of_likelihood(emulator.model_.likelihood) == "noise_free" and exact.noise < 1e-8
    drawn = emulator.sample_y(points, n_samples=2)
    assert np.abs(drawn - mean[:, None]).max() < 6.0 * deviation.max()


def test_a_finer_grid_is_no_worse_and_equal_runs_do_no_harm() -> None:
    """Catches matrices that cannot be factorised where runs are equal, nearly equal or many."""
    points, errors = RNG.random((300, 2)), []
    for size in (7, 13):
        axis = np.linspace(0.0, 1.0, size)
        X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        if size == 13:
            X = np.concatenate([X, X[:20], X[:20] + 1e-9])
        errors.append(np.abs(fit(X, smooth(X)).predict(points) - smooth(points)).max())
    assert errors[1] < errors[0]


def test_equal_runs_that_differ_are_refused() -> None:
    """Catches data with noise that are called free of it."""
    X = RNG.random((20, 2))
    y = smooth(X)
    X[7] = X[3]
    with pytest.raises(ValueError, match="rows 4 and 8"):
        fit(X, y)


def test_a_noise_of_1e_7_can_be_given() -> None:
    """Catches a floor of the package's own under what GPflow is told to take."""
    X = RNG.random((15, 1))
    likelihood = gpflow.likelihoods.Gaussian(1e-7, variance_lower_bound=1e-9)
    model = build_deep_wishart_process((X, np.sin(3.0 * X)), depth=1, likelihood=likelihood)
    assert np.isfinite(model.predict_y(X)[1].numpy()).all()


def test_inputs_that_act_one_by_one_get_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches sums and products that are not tried, and draws that are not functions of theirs."""
    monkeypatch.setattr("gpflow_dwp.selection.policy.FEWEST_ITERATIONS", 10)
    X = RNG.uniform(-np.pi, np.pi, (60, 3))
    y = np.sin(X[:, 0]) + 7.0 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
    emulator = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=0)
    emulator.fit(X, y)
    chosen = kernel_name(emulator.model_.output_layer.kernel)
    assert chosen.startswith("Additive")
    assert "SeparableMatern52" in {each.kernel for each in emulator.candidates_}
    draws = emulator.sample_y(X[:5], 20, random_state=0)
    assert np.abs(draws - y[:5, None]).max() < 0.1 * y.std()
    emulator.tell(X[:1] + 0.1, y[:1])
    assert kernel_name(emulator.model_.output_layer.kernel) == chosen


def test_an_output_of_many_orders_gets_a_warp() -> None:
    """Catches a warp that is not tried, is refused for a row that half of the runs miss, or is
    taken beside a mean function; and joint moments that are not those of each point."""
    rng = np.random.default_rng(0)
    X, T = rng.uniform(size=(40, 2)), rng.uniform(size=(9, 2))
    y, expected = (np.exp(8.0 * each[:, 0] * each[:, 1]) for each in (X, T))
    emulator = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=0)
    emulator.fit(X, y)
    likelihood = emulator.model_.likelihood
    assert isinstance(likelihood, WarpedGaussian) and is_noise_free(likelihood)
    np.testing.assert_allclose(emulator.predict(T), expected, rtol=0.2)
    units, posterior = emulator._raw_units(), emulator._posterior()
    mean, (covariance,) = units.joint_moments(posterior, T)
    of_each = units.function_moments(posterior, T)
    np.testing.assert_allclose(mean, of_each[0])
    np.testing.assert_allclose(np.diag(covariance)[:, None], of_each[1], rtol=1e-6)
    emulator.set_params(mean_function=gpflow.functions.Zero()).fit(X, y)
    assert type(emulator.model_.likelihood) is gpflow.likelihoods.Gaussian
