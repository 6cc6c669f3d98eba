"""Iterates of stochastic gradient descent on linear regression, beside the exact posterior.

Brownlie (2021), chapter 6. Its squared loss is a mean over the minibatch and its weight decay λ
adds λ θ to the gradient, as in PyTorch; its printed Wasserstein distances are squares of
distances. Both follow from its numbers: the shrinkage by λ = 0.1 that it reports is that of this
convention, and a distance cannot be below the difference of the standard deviations that the
covariances imply. Its iterates move away from the pretrained weights where λ = 0.1, so these had a
smaller λ: 0.001 here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.data import load_uci
from gpflow_dwp.iterates import (
    OnlineEM,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    observe_all,
    relative_frobenius_distance,
    wasserstein_distance,
)
from gpflow_dwp.validation import check_integers

__all__ = [
    "LinearRegressionPosterior",
    "compare_iterates_with_posterior",
    "compare_predictions",
    "linear_regression_posterior",
    "sgd_iterates",
    "window_means",
]

_NUM_DATA = 1_000
_PRIOR_PRECISION = 0.01
_NOISE_PRECISION = 0.1
_WEIGHT_DECAY = 1e-3
_INPUT_COVARIANCE = np.array([[1.0, 0.5], [0.5, 1.0]])


class LinearRegressionPosterior(NamedTuple):
    """A Gaussian over the weights.

    :param mean: [D].
    :param covariance: [D, D].
    """

    mean: Array
    covariance: Array


def linear_regression_posterior(
    X: npt.ArrayLike, y: npt.ArrayLike, *, prior_precision: float, noise_precision: float
) -> LinearRegressionPosterior:
    """Return the exact posterior of y = θᵀ x + ε (equations 2.11 to 2.14).

    :param X: Inputs, [N, D]; a constant is a column of ones.
    :param y: Targets, [N].
    :param prior_precision: α: the prior is N(0, I / α).
    :param noise_precision: β: the noise is N(0, 1 / β).
    :raises ValueError: If the shapes do not fit or a precision is not positive.
    """
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X and y must have shapes [N, D] and [N], got {X.shape} and {y.shape}.")
    for name, value in (("prior_precision", prior_precision), ("noise_precision", noise_precision)):
        if not value > 0.0:
            raise ValueError(f"{name} must be positive, got {value}.")
    precision = prior_precision * np.eye(X.shape[1]) + noise_precision * X.T @ X
    covariance = np.linalg.inv(precision)
    return LinearRegressionPosterior(noise_precision * covariance @ X.T @ y, covariance)


def sgd_iterates(
    X: Array,
    y: Array,
    start: Array,
    *,
    learning_rate: float,
    weight_decay: float,
    batch_size: int,
    num_epochs: int,
    rng: np.random.Generator,
) -> Array:
    """Descend the mean squared error, and return the weights after every step, [T, D].

    :param X: Inputs, [N, D].
    :param y: Targets, [N].
    :param start: Weights, [D].
    :param learning_rate: Of every step.
    :param weight_decay: λ; λ θ is added to the gradient.
    :param batch_size: Rows of a minibatch, drawn without replacement within an epoch; what does
        not fill one is left out of the epoch.
    :param num_epochs: Passes through the data.
    :param rng: For the order of the rows.
    """
    weights, iterates = start, []
    batches_per_epoch = len(X) // batch_size
    for _ in range(num_epochs):
        order = rng.permutation(len(X))[: batches_per_epoch * batch_size]
        for rows in order.reshape(batches_per_epoch, batch_size):
            inputs = X[rows]
            gradient = 2.0 / batch_size * inputs.T @ (inputs @ weights - y[rows])
            weights = weights - learning_rate * (gradient + weight_decay * weights)
            iterates.append(weights)
    return np.array(iterates)


def window_means(iterates: Array, window: int) -> Array:
    """Average disjoint windows of iterates (Mandt, Hoffman and Blei, 2017).

    :param iterates: [T, D].
    :param window: How many make an average; what does not fill a window is left out.
    :return: [T // window, D].
    :raises ValueError: If there are fewer iterates than one window.
    """
    if not 0 < window <= len(iterates):
        raise ValueError(f"window must be from 1 to {len(iterates)}, got {window}.")
    count = len(iterates) // window
    return iterates[: count * window].reshape(count, window, -1).mean(axis=1)


def compare_iterates_with_posterior(num_trials: int = 10) -> Iterator[dict[str, Any]]:
    """Rerun Table 6.1, with the weight decay that the posterior implies and window averages added.

    The posterior's mode minimises the mean squared error plus θᵀθ α / (β N), whose gradient is
    that of a weight decay of 2 α / (β N), 0.0002 here; the table's 0.1 is α / β.

    :param num_trials: Trial t has seed t.
    :return: A row for each trial, learning rate, weight decay and kind of sample.
    :raises ValueError: If ``num_trials`` is not a positive integer.
    """
    check_integers(num_trials=num_trials)
    implied = 2.0 * _PRIOR_PRECISION / (_NOISE_PRECISION * _NUM_DATA)
    settings = [
        *((rate, decay, 100, 1) for rate in (0.1, 0.01) for decay in (0.1, 0.001, implied)),
        (0.1, 0.001, 10, 50),
    ]
    for trial in range(num_trials):
        rng = np.random.default_rng(trial)
        X = rng.multivariate_normal(np.zeros(2), _INPUT_COVARIANCE, _NUM_DATA)
        truth = rng.standard_normal(2) / np.sqrt(_PRIOR_PRECISION)
        y = X @ truth + rng.standard_normal(_NUM_DATA) / np.sqrt(_NOISE_PRECISION)
        posterior = linear_regression_posterior(
            X, y, prior_precision=_PRIOR_PRECISION, noise_precision=_NOISE_PRECISION
        )
        start = rng.standard_normal(2)
        for learning_rate, weight_decay, batch_size, window in settings:
            samples = window_means(
                _collected(X, y, start, learning_rate, weight_decay, batch_size, rng), window
            )
            moments = samples.mean(axis=0), np.cov(samples.T)
            yield {
                "trial": trial,
                "learning_rate": learning_rate,
                "weight_decay": weight_decay,
                "batch_size": batch_size,
                "window": window,
                "distance_of_means": relative_frobenius_distance(posterior.mean, moments[0]),
                "distance_of_covariances": relative_frobenius_distance(
                    posterior.covariance, moments[1]
                ),
                "squared_wasserstein_distance": wasserstein_distance(posterior, moments) ** 2,
            }


def compare_predictions(
    dataset: str, *, num_folds: int = 10, uci_folder: str | Path | None = None
) -> Iterator[dict[str, Any]]:
    """Rerun Figure 6.3: test errors of the pretrained weights, SWA and two ensembles of 30 draws.

    :param dataset: Name of a UCI data set.
    :param num_folds: Folds of cross-validation; fold f is also the seed.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :return: A row for each fold and kind of prediction, with the mean squared error in raw units.
    :raises ValueError: If ``num_folds`` is not an integer from 2 to the number of rows.
    """
    check_integers(at_least=2, num_folds=num_folds)
    split = load_uci(dataset, 0, folder=uci_folder)
    inputs = np.concatenate([split.X_train, split.X_test])
    targets = np.concatenate([split.Y_train, split.Y_test]).ravel()
    if num_folds > len(inputs):
        raise ValueError(
            f"num_folds must be at most the number of rows, {len(inputs)}, got {num_folds}."
        )
    order = np.random.default_rng(0).permutation(len(inputs))
    for fold, test in enumerate(np.array_split(order, num_folds)):
        train = np.setdiff1d(order, test)
        mean, deviation = inputs[train].mean(axis=0), inputs[train].std(axis=0)
        deviation[deviation == 0.0] = 1.0
        X = np.column_stack([(inputs - mean) / deviation, np.ones(len(inputs))])
        rng = np.random.default_rng(fold)
        start = rng.standard_normal(X.shape[1])
        weights = _predictive_weights(X[train], targets[train], start, rng, fold)
        for name, value in weights.items():
            error = float(np.mean((X[test] @ value - targets[test]) ** 2))
            yield {"dataset": dataset, "fold": fold, "predictor": name, "mse": error}


def _collected(
    X: Array,
    y: Array,
    start: Array,
    learning_rate: float,
    weight_decay: float,
    batch_size: int,
    rng: np.random.Generator,
) -> Array:
    """Iterates of 100 epochs, after 500 with a small learning rate."""
    start = sgd_iterates(
        X,
        y,
        start,
        learning_rate=1e-3,
        weight_decay=_WEIGHT_DECAY,
        batch_size=100,
        num_epochs=500,
        rng=rng,
    )[-1]
    return sgd_iterates(
        X,
        y,
        start,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        batch_size=batch_size,
        num_epochs=100,
        rng=rng,
    )


def _predictive_weights(
    X: Array, y: Array, start: Array, rng: np.random.Generator, seed: int
) -> dict[str, Array]:
    """Weights whose predictions are those of each method: an ensemble's is that of its mean."""
    batch_size = len(X) // 10
    options: dict[str, Any] = {"weight_decay": _WEIGHT_DECAY, "batch_size": batch_size, "rng": rng}
    pretrained = sgd_iterates(X, y, start, learning_rate=1e-3, num_epochs=500, **options)[-1]
    iterates = sgd_iterates(X, y, pretrained, learning_rate=0.1, num_epochs=100, **options)
    weights = {"pretrained": pretrained, "SWA": iterates.mean(axis=0)}
    algorithms: dict[str, OnlineFactorAnalysis[Any]] = {
        "EM ensemble": OnlineEM(3),
        "SGA ensemble": OnlineGradientAscent(3),
    }
    for name, algorithm in algorithms.items():
        state = observe_all(algorithm, algorithm.init(X.shape[1], seed=seed), tf.constant(iterates))
        draws = algorithm.model(state).sample(30, seed=seed)
        weights[name] = draws.numpy().mean(axis=0)
    return weights
