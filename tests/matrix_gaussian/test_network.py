"""The matrix-Gaussian network as a model of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.linalg import hadamard
from scipy.stats import multivariate_normal

from gpflow_dwp import fit
from gpflow_dwp.matrix_gaussian import (
    MatrixGaussianLayer,
    MatrixGaussianNetwork,
    build_matrix_gaussian_network,
)
from gpflow_dwp.models import load_model, save_model
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import Adam

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 3))
Y = 3.0 + 2.0 * np.tanh(X[:, :1]) + 0.1 * RNG.normal(size=(40, 1))


def network(**arguments: object) -> MatrixGaussianNetwork:
    settings: Any = {"width": 8, "num_samples": 4, **arguments}
    return build_matrix_gaussian_network((X, Y), **settings)


def test_bound_of_one_layer_is_tight() -> None:
    """With a fixed Gaussian noise one layer is Bayesian linear regression; of columns that are
    orthogonal, weights are independent given the data."""
    inputs = hadamard(8)[:, 1:4] * [0.5, 1.0, 2.0]
    targets = np.random.default_rng(4).normal(size=(8, 1))
    A = np.hstack([inputs, np.ones((8, 1))]) / 2.0
    layer = MatrixGaussianLayer(3, 1)
    model = MatrixGaussianNetwork([layer], gpflow.likelihoods.Gaussian(0.5), 8, 1)
    covariance = np.linalg.inv(np.eye(4) + A.T @ A / 0.5)
    layer.mean.assign(covariance @ A.T @ targets / 0.5)
    layer.row_root.diagonal.assign(np.sqrt(np.diag(covariance)))
    evidence = multivariate_normal(cov=A @ A.T + 0.5 * np.eye(8)).logpdf(targets[:, 0])
    np.testing.assert_allclose(model.elbo((inputs, targets)), evidence, rtol=1e-8)


@pytest.mark.parametrize(("batch_size", "num_steps", "tolerance"), [(40, 1, 1e-10), (8, 60, 0.1)])
def test_noise_has_the_best_posterior(batch_size: int, num_steps: int, tolerance: float) -> None:
    """Catches a rate that lags: a step on all rows finds the best one from anywhere, and steps on
    some rows come close, with weights that stay where they are."""
    model = build_matrix_gaussian_network((X, Y), 1, num_pseudo_data=0)
    precision = model.likelihood.precision
    precision.rate.assign(1e4)
    fit(model, (X, Y), num_steps, batch_size=batch_size, optimizer=Adam(0.0), progress=False)
    mean, variance = model.predict_f(X)
    assert model.objective_name == "ELBO" and network().objective_name == "objective"
    best = precision.prior_rate + 0.5 * np.sum((Y - mean) ** 2 + variance)
    np.testing.assert_allclose(precision.rate, best, rtol=tolerance)


def test_a_saved_network_predicts_the_same_in_any_batch(tmp_path: Path) -> None:
    model = network(num_pseudo_data=2, column_covariance="rank_one")
    save_model(model, tmp_path)
    loaded, whole = load_model(tmp_path), model.predict_log_density((X, Y))
    parts = [loaded.predict_log_density((X[rows], Y[rows])) for rows in (slice(9), slice(9, None))]
    np.testing.assert_allclose(tf.concat(parts, 0), whole)
    np.testing.assert_array_equal(loaded.predict_y(X)[0], model.predict_y(X)[0])


def test_outputs_of_a_regression_have_the_scale_of_the_targets() -> None:
    for likelihood in (None, gpflow.likelihoods.Gaussian(0.5), gpflow.likelihoods.StudentT(0.5)):
        model = network(likelihood=likelihood)
        np.testing.assert_allclose(model.output_loc, Y.mean(axis=0))
        np.testing.assert_allclose(model.output_scale, Y.std(axis=0))


def test_counts_of_pseudo_data_and_units_that_are_refused() -> None:
    for arguments, message in (
        ({"num_pseudo_data": (7,)}, "num_pseudo_data must hold depth=3 numbers, got 1"),
        ({"num_pseudo_data": (7, 5, -1)}, "num_pseudo_data must be an integer of at least 0"),
        ({"width": 0}, "width must be a positive integer, got 0"),
        ({"width": 2**40}, "must be smaller, got 1099511627776"),
    ):
        with pytest.raises(ValueError, match=message):
            build_matrix_gaussian_network((X, Y), 3, **arguments)


def test_layers_that_do_not_fit_are_refused() -> None:
    layers = [MatrixGaussianLayer(3, 4), MatrixGaussianLayer(5, 1)]
    with pytest.raises(ValueError, match="num_outputs=4 is below a layer of num_inputs=5"):
        MatrixGaussianNetwork(layers, gpflow.likelihoods.Gaussian(), 10)
    twice = [layer := MatrixGaussianLayer(3, 3), layer]
    with pytest.raises(ValueError, match=r"layers\[1\] must be a layer of its own"):
        MatrixGaussianNetwork(twice, gpflow.likelihoods.Gaussian(), 10)


def two_outputs(depth: int = 2) -> MatrixGaussianNetwork:
    """A network whose outputs are correlated and scaled, away from its start."""
    targets = np.hstack([Y, -0.5 * Y**2])
    given: Any = {"width": 5, "num_pseudo_data": 2, "column_covariance": "rank_one"}
    model = build_matrix_gaussian_network((X, targets), depth, **given)
    rng = np.random.default_rng(3)
    for layer in model.layers:
        layer.row_root.diagonal.assign(rng.uniform(0.3, 0.8, layer.row_root.diagonal.shape))
        layer.column_root.direction.assign(rng.normal(size=layer.num_outputs))
        layer.pseudo_inputs.assign(rng.normal(size=layer.pseudo_inputs.shape))
    return model


def test_covariances_of_one_layer_are_those_of_its_matrix_gaussian() -> None:
    model, count = two_outputs(1), 20_000
    layer = model.layers[0]
    layer.dropout.assign(np.full(2, 1e-12))  # one draw of the pseudo-data is like another
    output = layer.propagate(tf.constant(X[None, :4]), 1, as_seed(0), full_cov=True)
    root = layer.column_root.operator().to_dense().numpy() * model.output_scale[:, None]
    dense = np.einsum("nm,pq->npmq", output.row_variance[0], root @ root.T)
    blocks = (True, "npmp->pnm", "npmq->npmq"), (False, "npnp->np", "npnq->npq")
    for full_cov, block, of_draws in blocks:
        _, covariance = model.predict_f(X[:4], full_cov, num_samples=2)
        np.testing.assert_allclose(covariance, np.einsum(block, dense), atol=1e-4 * dense.max())
        drawn = model.predict_f_samples(X[:4], count, full_cov, seed=2).numpy()
        found = np.cov(drawn.reshape(count, -1).T).reshape(dense.shape)
        error = np.einsum(of_draws, found - dense)
        assert np.abs(error).max() < 8.0 / np.sqrt(count) * dense.max()


def test_samples_have_the_moments_that_are_predicted_at_each_point_and_jointly() -> None:
    """Hidden units are drawn in two ways, at each point and by weights, which agree."""
    model, count = two_outputs(), 20_000
    (mean, variance), (joint_mean, covariance) = (
        [part.numpy() for part in model.predict_f(X[:3], full_cov, num_samples=count, seed=1)]
        for full_cov in (False, True)
    )
    error = np.einsum("qnn->nq", covariance) - variance
    assert (np.abs(error) / variance).max() < 16.0 / np.sqrt(count)
    means = [joint_mean - mean]
    for full_cov, moments, product in (
        (False, (mean, variance), "snq,snq->nq"),
        (True, (joint_mean, covariance), "snq,smq->qnm"),
    ):
        drawn = model.predict_f_samples(X[:3], count, full_cov, seed=2).numpy()
        means.append(drawn.mean(axis=0) - moments[0])
        centred = drawn - drawn.mean(axis=0)
        error = np.einsum(product, centred, centred) / count - moments[1]
        # Both sides are estimates; products of two non-Gaussian numbers have a larger spread.
        assert np.abs(error).max() < 16.0 / np.sqrt(count) * variance.max()
    assert (np.abs(means) / np.sqrt(variance)).max() < 6.0 * np.sqrt(2.0 / count)


def test_raw_and_standardised_targets_give_the_same_bound_up_to_the_jacobian() -> None:
    scale = Y.std()
    standardised = (Y - Y.mean()) / scale
    raw, given = network(seed=2), {"width": 8, "num_samples": 4, "target_scale": float(scale)}
    other = build_matrix_gaussian_network((X, standardised), seed=2, **given)
    difference = other.elbo((X, standardised), seed=1) - raw.elbo((X, Y), seed=1)
    np.testing.assert_allclose(difference, len(X) * np.log(scale), rtol=1e-6)
