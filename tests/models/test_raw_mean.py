"""Mean functions of raw units: against the Gaussian process of what they leave, in NumPy."""

from __future__ import annotations

import pickle
from pathlib import Path

import gpflow
import numpy as np
import pytest

from gpflow_dwp import emulation
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 5.0, (25, 2))
NEW = RNG.uniform(1.0, 5.0, (4, 2))
NOISE = 0.1 * RNG.standard_normal(25)
GIVEN = {"likelihood": "gaussian", "effort": "quick", "random_state": 0}


def trend() -> gpflow.functions.MeanFunction:
    return gpflow.functions.Linear(A=[[30.0], [-20.0]], b=7.0)


def simulator(X: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * X[:, 0]) + trend()(X).numpy()[:, 0]


def test_what_a_trend_leaves_is_learned(tmp_path: Path) -> None:
    """Catches a trend in the model's units, learned twice, or lost in a file or a further run."""
    given = {**GIVEN, "kernel": "SquaredExponential"}
    y = simulator(X) + NOISE
    fitted = DeepWishartRegressor(**given, mean_function=trend()).fit(X, y)
    left = DeepWishartRegressor(**given).fit(X, y - trend()(X).numpy()[:, 0])
    known = trend()(NEW).numpy()[:, 0]
    mean, std = left.predict(NEW, return_std=True)
    np.testing.assert_allclose(fitted.predict(NEW, return_std=True), [mean + known, std], rtol=1e-5)
    far = np.array([[1e3, -1e3]])
    np.testing.assert_allclose(fitted.predict(far), trend()(far)[:, 0], rtol=1e-3)
    samples = fitted.sample_y(NEW, 50).mean(axis=1)
    np.testing.assert_allclose(samples, mean + known, atol=std.max())
    left_out, of_rest = (emulation.leave_one_out(each) for each in (fitted, left))
    np.testing.assert_allclose(left_out.crps, of_rest.crps, rtol=1e-3)
    slopes = emulation.gradient(fitted, NEW)[0] - emulation.gradient(left, NEW)[0]
    np.testing.assert_allclose(slopes, [[30.0, -20.0]] * 4, rtol=1e-4)
    fitted.save(tmp_path / "fitted")
    loaded = DeepWishartRegressor.load(tmp_path / "fitted")
    for copy in (loaded, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copy.predict(NEW), fitted.predict(NEW))
    loaded.tell(NEW, simulator(NEW))
    np.testing.assert_allclose(loaded.predict(NEW), simulator(NEW), atol=0.5)


@pytest.mark.usefixtures("eager")
def test_deep_models_have_a_trend_too() -> None:
    """Catches a trend below hidden layers, and one that a deep model does not subtract."""
    fitted = DeepWishartRegressor(depth=2, kernel=["Matern52"] * 2, num_steps=1, random_state=0)
    fitted.set_params(mean_function=trend()).fit(X, simulator(X))
    far = np.array([[1e3, -1e3]])
    np.testing.assert_allclose(fitted.predict(far), trend()(far)[:, 0], rtol=1e-3)
    assert np.abs(fitted.predict(X) - simulator(X)).max() < 3.0


def test_what_is_no_trend_is_named() -> None:
    """Catches a warp in whose units a trend would be, and shapes that broadcast."""
    for arguments, message in (
        ({"mean_function": "quadratic"}, "'linear' or None, got 'quadratic'"),
        ({"mean_function": gpflow.functions.Linear(np.ones((2, 2)))}, r"numbers \[25, 1\]"),
        ({"mean_function": trend(), "likelihood": "warped"}, "got 'warped'"),
    ):
        with pytest.raises(ValueError, match=message):
            DeepWishartRegressor(**{**GIVEN, **arguments}).fit(X, simulator(X))
    with pytest.raises(ValueError, match="None for a classifier"):
        DeepWishartClassifier(mean_function=trend()).fit(X, X[:, 0] > 3.0)
