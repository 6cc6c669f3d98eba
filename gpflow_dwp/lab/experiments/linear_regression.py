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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.data import UCI_DATASETS, Standardiser, load_uci
from gpflow_dwp.iterates import (
    OnlineEM,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    observe_all,
    relative_frobenius_distance,
    wasserstein_distance,
)
from gpflow_dwp.lab.experiments.experiment import Experiment
from gpflow_dwp.validation import check_choice, check_integers

__all__ = [
    "LinearPosterior",
    "LinearPrediction",
    "LinearRegressionPosterior",
    "linear_regression_posterior",
    "sgd_iterates",
    "window_means",
]

_NUM_DATA = 1_000
_PRIOR_PRECISION = 0.01
_NOISE_PRECISION = 0.1
_PRETRAINING: dict[str, Any] = {"learning_rate": 1e-3, "weight_decay": 1e-3, "num_epochs": 500}
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


@dataclass(frozen=True)
class LinearPosterior(Experiment):
    """Table 6.1, with the weight decay that the posterior implies and window averages added.

    The posterior's mode minimises the mean squared error plus θᵀθ α / (β N), whose gradient is
    that of a weight decay of 2 α / (β N), 0.0002 here; the table's 0.1 is α / β.

    :param trials: Trial t has seed t.
    """

    trials: int = 10

    groups = ("learning_rate", "weight_decay", "batch_size", "window")
    values = ("distance_of_means", "distance_of_covariances", "squared_wasserstein_distance")

    def check(self) -> None:
        check_integers(trials=self.trials)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return distances for each trial, learning rate, weight decay and kind of sample."""
        implied = 2.0 * _PRIOR_PRECISION / (_NOISE_PRECISION * _NUM_DATA)
        settings = [
            *((rate, decay, 100, 1) for rate in (0.1, 0.01) for decay in (0.1, 0.001, implied)),
            (0.1, 0.001, 10, 50),
        ]
        for trial in range(self.trials):
            rng = np.random.default_rng(trial)
            X = rng.multivariate_normal(np.zeros(2), _INPUT_COVARIANCE, _NUM_DATA)
            truth = rng.standard_normal(2) / np.sqrt(_PRIOR_PRECISION)
            y = X @ truth + rng.standard_normal(_NUM_DATA) / np.sqrt(_NOISE_PRECISION)
            posterior = linear_regression_posterior(
                X, y, prior_precision=_PRIOR_PRECISION, noise_precision=_NOISE_PRECISION
            )
            start = rng.standard_normal(2)
            descend = partial(sgd_iterates, X, y, rng=rng)
            for rate, decay, batch_size, window in settings:
                pretrained = descend(start, batch_size=100, **_PRETRAINING)[-1]
                iterates = descend(
                    pretrained,
                    learning_rate=rate,
                    weight_decay=decay,
                    batch_size=batch_size,
                    num_epochs=100,
                )
                samples = window_means(iterates, window)
                mean, covariance = samples.mean(axis=0), np.cov(samples.T)
                distance = wasserstein_distance(posterior, (mean, covariance))
                yield {
                    "trial": trial,
                    **dict(zip(self.groups, (rate, decay, batch_size, window), strict=True)),
                    "distance_of_means": relative_frobenius_distance(posterior.mean, mean),
                    "distance_of_covariances": relative_frobenius_distance(
                        posterior.covariance, covariance
                    ),
                    "squared_wasserstein_distance": distance**2,
                }


@dataclass(frozen=True)
class LinearPrediction(Experiment):
    """Figure 6.3: test errors of the pretrained weights, SWA and two ensembles of 30 draws.

    :param dataset: Name of a UCI data set.
    :param trials: Folds of cross-validation; fold f is also the seed.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    """

    dataset: str
    trials: int = 10
    uci_folder: Path | None = None

    key = ("dataset",)
    effort = (("trials", "fold"),)
    groups = ("dataset", "predictor")
    values = ("mse",)

    def check(self) -> None:
        check_choice(UCI_DATASETS, dataset=self.dataset)
        check_integers(at_least=2, trials=self.trials)
        num_data = len(self._load()[0])
        if self.trials > num_data:
            raise ValueError(
                f"trials must be at most the rows of {self.dataset}, {num_data}, got {self.trials}."
            )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the mean squared error in raw units for each fold and kind of prediction."""
        inputs, targets = self._load()
        order = np.random.default_rng(0).permutation(len(inputs))
        for fold, test in enumerate(np.array_split(order, self.trials)):
            train = np.setdiff1d(order, test)
            scaled = Standardiser.fit(inputs[train]).transform(inputs)
            X = np.column_stack([scaled, np.ones(len(inputs))])
            for name, value in _predictive_weights(X[train], targets[train], fold).items():
                error = float(np.mean((X[test] @ value - targets[test]) ** 2))
                yield {"dataset": self.dataset, "fold": fold, "predictor": name, "mse": error}

    def _load(self) -> tuple[Array, Array]:
        """Inputs and targets of all rows."""
        split = load_uci(self.dataset, 0, folder=self.uci_folder)
        targets = np.concatenate([split.Y_train, split.Y_test])
        return np.concatenate([split.X_train, split.X_test]), targets.ravel()


def _predictive_weights(X: Array, y: Array, seed: int) -> dict[str, Array]:
    """Weights whose predictions are those of each method: an ensemble's is that of its mean."""
    rng = np.random.default_rng(seed)
    descend = partial(sgd_iterates, X, y, batch_size=len(X) // 10, rng=rng)
    pretrained = descend(rng.standard_normal(X.shape[1]), **_PRETRAINING)[-1]
    iterates = descend(pretrained, **(_PRETRAINING | {"learning_rate": 0.1, "num_epochs": 100}))
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
