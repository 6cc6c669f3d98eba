"""Latent variables in front of deep kernel processes: exact cases, and processes without them."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
from model_reference import GivenEncoder
from scipy import stats

from gpflow_dwp import fit
from gpflow_dwp.latent_variable_deep_gp import (
    LatentVariableLayer,
    LatentVariableProcess,
    NetworkEncoder,
)
from gpflow_dwp.latent_variable_deep_gp.latent_variable import RowEncoder
from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer
from gpflow_dwp.models import DeepKernelProcess, load_model, save_model

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(4, 1)), RNG.normal(size=(4, 1))
Z = RNG.normal(size=(5, 2))
NOISE, SLOPE = 0.4, 1.5


def prior_encoder(num_rows: int = 4) -> GivenEncoder:
    return GivenEncoder(np.zeros((num_rows, 1)), np.ones((num_rows, 1)))


def parts(*, ignored: bool) -> tuple[list, gpflow.likelihoods.Gaussian, np.ndarray]:
    """Layers of a process of two inputs, whose second may have no influence."""
    kernel = gpflow.kernels.SquaredExponential(active_dims=[0] if ignored else [0, 1])
    layer = WishartLayer(kernel, 2, 5, seed=0)
    top = gpflow.kernels.SquaredExponential()
    output = GlobalInducingGPLayer(top, 1, pseudo_targets=Z[:, :1], precision=4.0)
    return [layer, output], gpflow.likelihoods.Gaussian(NOISE), Z


def test_latent_variables_without_influence_change_nothing() -> None:
    """Catches copies of a row that see other draws than each other: with 8 the bound would grow."""
    layers, likelihood, points = parts(ignored=True)
    plain = DeepKernelProcess(layers, likelihood, points, 4, 2_000)
    first = LatentVariableLayer(prior_encoder())
    model = LatentVariableProcess([first, *layers], likelihood, points, 4, 500)
    expected = plain.elbo((np.hstack([X, X]), Y), seed=1)
    for K in (1, 8):
        bounds = [float(model.elbo((X, Y), num_importance_samples=K, seed=s)) for s in range(3)]
        error = np.std(bounds, ddof=1) + 1e-3
        assert abs(np.mean(bounds) - expected) < 4.0 * error, (K, bounds, float(expected))


def linear_process(num_samples: int) -> LatentVariableProcess:
    """y = 1.5 w + noise, with an encoder that knows nothing of y."""
    kernel = gpflow.kernels.Linear(active_dims=[1])
    output = GlobalInducingGPLayer(kernel, 1, pseudo_targets=[[SLOPE]], precision=1e10)
    layers = [LatentVariableLayer(prior_encoder(3)), output]
    likelihood = gpflow.likelihoods.Gaussian(NOISE)
    return LatentVariableProcess(layers, likelihood, np.array([[0.0, 1.0]]), 3, num_samples)


def test_bound_grows_up_to_the_evidence() -> None:
    model, Y = linear_process(1_000), np.array([[-1.0], [0.3], [2.0]])
    evidence = stats.norm.logpdf(Y, scale=np.sqrt(SLOPE**2 + NOISE)).sum()
    data = np.zeros((3, 1)), Y
    terms = [model.elbo_terms(data, num_importance_samples=K, seed=0) for K in (1, 5, 100)]
    bounds = [float(each.data) for each in terms]
    assert np.all(np.diff(bounds) > 0.0), bounds
    assert evidence - 0.1 < bounds[-1] < evidence + 0.02, (bounds, evidence)


def test_predictions_draw_latent_variables_from_their_prior() -> None:
    model, X = linear_process(1), np.zeros((3, 1))
    _, variance = model.predict_y(X, num_samples=20_000)
    np.testing.assert_allclose(variance, SLOPE**2 + NOISE, rtol=0.06)
    _, covariance = model.predict_f(X, full_cov=True, num_samples=20_000)
    # Points have variables of their own, whatever their inputs.
    np.testing.assert_allclose(covariance[0], SLOPE**2 * np.eye(3), atol=0.12)


@pytest.mark.usefixtures("eager")
def test_trained_model_is_saved(tmp_path: Path) -> None:
    layers, likelihood, points = parts(ignored=False)
    first = LatentVariableLayer(NetworkEncoder(2, seed=0))
    model = LatentVariableProcess([first, *layers], likelihood, points, 4)
    fit(model, (X, Y), 1, num_importance_samples=3, progress=False)
    save_model(model, tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).predict_y(X), model.predict_y(X))


def test_parts_that_do_not_fit_are_refused() -> None:
    layers, likelihood, points = parts(ignored=False)
    with pytest.raises(ValueError, match=r"layers\[0\] must be an instance of LatentVariableLayer"):
        LatentVariableProcess(layers, likelihood, points, 4)
    first = LatentVariableLayer(NetworkEncoder(2), doubly_reparameterised=True)
    with pytest.raises(ValueError, match="must not be doubly_reparameterised"):
        LatentVariableProcess([first, *layers], likelihood, points, 4)
    first = LatentVariableLayer(NetworkEncoder(2, latent_dim=2))
    with pytest.raises(ValueError, match="columns of inducing_variable .* positive integer, got 0"):
        LatentVariableProcess([first, *layers], likelihood, points, 4)


def test_divergences_need_no_row_that_the_encoder_knows() -> None:
    """Catches a summary that fails because a row is asked for that has no latent variables."""
    layers, likelihood, points = parts(ignored=False)
    first = LatentVariableLayer(RowEncoder(X, Y))
    model = LatentVariableProcess([first, *layers], likelihood, points, 4)
    plain = LatentVariableProcess(
        [LatentVariableLayer(prior_encoder(1)), *layers], likelihood, points, 4
    )
    assert model.divergences() == plain.divergences()
