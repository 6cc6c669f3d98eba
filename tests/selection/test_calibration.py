"""Deviations that are scaled by rows that are left out."""

from __future__ import annotations

import gpflow
import numpy as np

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection.calibration import scale_deviations

RNG = np.random.default_rng(3)
X, POINTS = RNG.uniform(-1.7, 1.7, (150, 2)), RNG.uniform(-1.7, 1.7, (20, 2))
Y = np.abs(np.sin(2.0 * X[:, :1]) + X[:, 1:])


def model_of(num_rows: int) -> DeepWishartProcess:
    """A process without noise whose variance is far too large."""
    data, jitter = (X[:num_rows], Y[:num_rows]), 1e-12
    kernel = gpflow.kernels.Matern52(variance=400.0, lengthscales=1.2)
    given = {"num_inducing": num_rows, "kernel": kernel, "likelihood": "noise_free"}
    return build_deep_wishart_process(data, 1, jitter=jitter, **given)


def test_intervals_hold_rows_that_are_left_out() -> None:
    """Catches a wrong scale, a nugget that is left behind, and means that move."""
    model = model_of(150)
    before = [part.numpy() for part in model.predict_f(POINTS)]
    nugget = float(model.likelihood.variance.numpy())
    inverse = np.linalg.inv(model.output_layer.kernel(X).numpy() + nugget * np.eye(150))
    own = 1.0 / np.diagonal(inverse)
    errors, variances = (inverse @ Y)[:, 0] * own, own - nugget
    square = np.quantile(errors**2 / variances, 0.95) / 1.959964**2
    assert square < 0.5
    np.testing.assert_allclose(scale_deviations(model), square, rtol=1e-3)
    mean, variance = (part.numpy() for part in model.predict_f(POINTS))
    np.testing.assert_allclose(mean, before[0], atol=1e-5)
    np.testing.assert_allclose(variance, square * before[1], rtol=1e-3)
    np.testing.assert_allclose(model.likelihood.variance, square * nugget, rtol=1e-3)


def test_few_rows_do_not_tell() -> None:
    """Catches a scale that a few rows far from each other decide."""
    model = model_of(100)
    assert scale_deviations(model) == 1.0
    np.testing.assert_allclose(model.output_layer.kernel.variance, 400.0)
