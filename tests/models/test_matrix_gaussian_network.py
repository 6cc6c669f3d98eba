"""The matrix-Gaussian network as a model of the package."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.layers import MatrixGaussianLayer
from gpflow_dwp.models import (
    MatrixGaussianNetwork,
    build_matrix_gaussian_network,
    load_model,
    save_model,
)
from gpflow_dwp.training import fit

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 3))
Y = 3.0 + 2.0 * np.tanh(X[:, :1]) + 0.1 * RNG.normal(size=(40, 1))


def network(**arguments: object) -> MatrixGaussianNetwork:
    return build_matrix_gaussian_network(
        (X, Y),
        width=8,
        num_samples=4,
        **arguments,  # type: ignore[arg-type]
    )


def test_training_improves_bound_and_fit() -> None:
    model = network(num_pseudo_data=2)
    history = fit(model, (X, Y), 600, progress=False)

    assert history.elbo_per_datum[-20:].mean() > history.elbo_per_datum[:20].mean()
    mean, variance = model.predict_y(X)
    assert np.sqrt(np.mean((mean - Y) ** 2)) < 0.7 * Y.std()
    assert np.all(variance > 0.0)


def test_bound_of_one_layer_is_below_the_evidence_and_tight() -> None:
    """With a fixed Gaussian noise one layer is Bayesian linear regression."""
    A = np.hstack([X, np.ones((len(X), 1))]) / 2.0
    layer = MatrixGaussianLayer(3, 1, row_covariance="full")
    model = MatrixGaussianNetwork([layer], gpflow.likelihoods.Gaussian(0.5), len(X), 1)
    covariance = np.linalg.inv(np.eye(4) + A.T @ A / 0.5)
    layer.mean.assign(covariance @ A.T @ Y / 0.5)
    layer.row_root.tril.assign(np.linalg.cholesky(covariance))
    K = A @ A.T + 0.5 * np.eye(len(X))
    evidence = -0.5 * (
        (Y.T @ np.linalg.solve(K, Y))[0, 0] + np.linalg.slogdet(K)[1] + len(X) * np.log(2.0 * np.pi)
    )

    np.testing.assert_allclose(model.elbo((X, Y)), evidence, rtol=1e-8)


def test_saved_network_predicts_the_same(tmp_path: Path) -> None:
    model = network(num_pseudo_data=2, column_covariance="rank_one")
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")

    np.testing.assert_array_equal(loaded.predict_y(X)[0], model.predict_y(X)[0])


def test_predictions_do_not_depend_on_batches() -> None:
    model = network(num_pseudo_data=2)
    whole = model.predict_log_density((X, Y))
    parts = [model.predict_log_density((X[rows], Y[rows])) for rows in (slice(9), slice(9, None))]

    np.testing.assert_allclose(tf.concat(parts, 0), whole)


def test_softmax_likelihood_predicts_probabilities() -> None:
    labels = RNG.integers(0, 3, size=(40, 1)).astype(float)
    model = build_matrix_gaussian_network(
        (X, labels), width=8, likelihood=gpflow.likelihoods.Softmax(3), num_samples=2
    )
    fit(model, (X, labels), 5, progress=False)
    np.testing.assert_allclose(tf.reduce_sum(model.predict_y(X)[0], axis=1), 1.0, rtol=1e-6)


def test_layers_that_do_not_fit_are_refused() -> None:
    layers = [MatrixGaussianLayer(3, 4), MatrixGaussianLayer(5, 1)]
    with pytest.raises(ValueError, match="num_outputs=4 is below a layer of num_inputs=5"):
        MatrixGaussianNetwork(layers, gpflow.likelihoods.Gaussian(), 10)


def test_covariances_of_points_are_refused() -> None:
    with pytest.raises(NotImplementedError):
        network().predict_f(X, full_cov=True)


def test_raw_and_standardised_targets_give_the_same_bound_up_to_the_jacobian() -> None:
    scale = Y.std()
    standardised = (Y - Y.mean()) / scale
    raw = network(seed=2)
    other = build_matrix_gaussian_network(
        (X, standardised), width=8, num_samples=4, target_scale=float(scale), seed=2
    )
    difference = other.elbo((X, standardised), seed=1) - raw.elbo((X, Y), seed=1)
    np.testing.assert_allclose(difference, len(X) * np.log(scale), rtol=1e-6)
