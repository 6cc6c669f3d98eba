from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.lab.experiments.linear_regression import (
    LinearPosterior,
    LinearPrediction,
    linear_regression_posterior,
    sgd_iterates,
    window_means,
)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, X @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.standard_normal(40)


def test_posterior_is_that_of_a_gaussian_process_in_weight_space(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = data
    posterior = linear_regression_posterior(X, y, prior_precision=2.0, noise_precision=4.0)

    # The same Gaussian conditioned as a joint one of weights and targets.
    gram = X @ X.T / 2.0 + np.eye(40) / 4.0
    gain = np.linalg.solve(gram, X / 2.0).T
    np.testing.assert_allclose(posterior.mean, gain @ y)
    np.testing.assert_allclose(posterior.covariance, np.eye(3) / 2.0 - gain @ X / 2.0)


def test_posterior_refuses(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match=r"X and y must have shapes \[N, D\] and \[N\]"):
        linear_regression_posterior(X, y[:, None], prior_precision=1.0, noise_precision=1.0)
    with pytest.raises(ValueError, match=r"noise_precision must be positive, got 0\.0"):
        linear_regression_posterior(X, y, prior_precision=1.0, noise_precision=0.0)


def test_descent_ends_at_the_mode(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    posterior = linear_regression_posterior(X, y, prior_precision=2.0, noise_precision=4.0)
    iterates = sgd_iterates(
        X,
        y,
        np.zeros(3),
        learning_rate=0.1,
        weight_decay=2.0 * 2.0 / (4.0 * 40),
        batch_size=40,
        num_epochs=500,
        rng=np.random.default_rng(0),
    )

    assert iterates.shape == (500, 3)
    np.testing.assert_allclose(iterates[-1], posterior.mean)


def test_minibatches_are_epochs(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    settings = {"learning_rate": 1e-9, "weight_decay": 0.0, "num_epochs": 1}
    rng = np.random.default_rng(0)
    small = sgd_iterates(X, y, np.zeros(3), batch_size=10, rng=rng, **settings)
    whole = sgd_iterates(X, y, np.zeros(3), batch_size=40, rng=rng, **settings)

    assert small.shape == (4, 3)
    np.testing.assert_allclose(small[-1], 4.0 * whole[-1], rtol=1e-6)


def test_window_means() -> None:
    iterates = np.arange(14.0).reshape(7, 2)

    np.testing.assert_array_equal(window_means(iterates, 3), [[2.0, 3.0], [8.0, 9.0]])
    with pytest.raises(ValueError, match="window must be from 1 to 7, got 8"):
        window_means(iterates, 8)


def test_table_of_distances() -> None:
    rows = list(LinearPosterior(1).rows())

    by_setting = {(row["learning_rate"], row["weight_decay"], row["window"]): row for row in rows}
    assert len(by_setting) == len(rows) == 7
    # As in print: much weight decay moves the mean; windows help the covariance.
    biased, free = by_setting[0.1, 0.1, 1], by_setting[0.1, 0.001, 1]
    assert biased["distance_of_means"] > 20.0 * free["distance_of_means"]
    assert by_setting[0.1, 0.001, 50]["distance_of_covariances"] < 0.6
    assert free["distance_of_covariances"] > 0.7


def test_predictions_on_a_uci_set(uci_folder: Path) -> None:
    rows = list(LinearPrediction("yacht", 2, uci_folder).rows())

    errors = {(row["fold"], row["predictor"]): row["mse"] for row in rows}
    assert len(errors) == 8
    for fold in range(2):
        assert abs(errors[fold, "EM ensemble"] / errors[fold, "SWA"] - 1.0) < 0.1
