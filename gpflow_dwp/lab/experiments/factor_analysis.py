"""How well online factor analysis recovers factor models (Brownlie, 2021, chapter 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.iterates import (
    FactorModel,
    OnlineEM,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    generate_factor_model,
    observe_all,
    relative_frobenius_distance,
    wasserstein_distance,
)
from gpflow_dwp.optional import import_optional
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.validation import check_integers

__all__ = ["SAMPLE_SIZES", "recover_factor_models"]

SAMPLE_SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Numbers of vectors after which the estimates are compared with the truth."""

_CHUNK = 1_000
_WARM_UP = 100


def recover_factor_models(
    dimension: int,
    largest: float,
    *,
    rank: int = 10,
    num_trials: int = 10,
    sample_sizes: Sequence[int] = SAMPLE_SIZES,
) -> Iterator[dict[str, Any]]:
    """Fit vectors drawn from factor models by online EM, online gradient ascent and batch SVD.

    All trials of one call run at once, one stream each; trial t has seed t. The batch fit by
    scikit-learn needs the vectors' moments only, and gets, where there are more than 2 D vectors,
    2 D rows with these very moments. The online algorithms start to learn after their warm-up of
    100 vectors, or K if that is more, and have no row before: the thesis's points there are of the
    start.

    :param dimension: D.
    :param largest: Upper end of the spectrum, whose lower end is 1.
    :param rank: K, of the models and of the fits.
    :param num_trials: How many models.
    :param sample_sizes: Increasing numbers of vectors.
    :return: A row for each number of vectors, trial and algorithm, with both distances.
    :raises ValueError: If a number cannot be used.
    """
    check_integers(num_trials=num_trials, rank=rank)
    check_integers(at_least=rank, dimension=dimension)
    check_integers(at_least=rank, **{f"sample_sizes[{i}]": n for i, n in enumerate(sample_sizes)})
    warm_up = max(_WARM_UP, rank)
    models = [
        generate_factor_model(dimension, rank, (1.0, largest), seed=trial)
        for trial in range(num_trials)
    ]
    algorithms: dict[str, OnlineFactorAnalysis[Any]] = {
        "EM": OnlineEM(rank, warm_up=warm_up),
        "SGA": OnlineGradientAscent(rank, warm_up=warm_up),
    }
    states = {
        name: algorithm.init(dimension, batch_shape=(num_trials,), seed=1)
        for name, algorithm in algorithms.items()
    }
    moments = [_Moments(dimension) for _ in models]
    seen = 0
    for size in sample_sizes:
        while seen < size:
            count = min(_CHUNK, size - seen)
            streams = [
                model.sample(count, seed=fold_in(as_seed(trial), seen))
                for trial, model in enumerate(models)
            ]
            for stream, moment in zip(streams, moments, strict=True):
                moment.add(stream.numpy())
            for name, algorithm in algorithms.items():
                states[name] = observe_all(algorithm, states[name], tf.stack(streams, axis=1))
            seen += count
        fits = {
            name: algorithms[name].model(state) for name, state in states.items() if size > warm_up
        }
        for trial, truth in enumerate(models):
            estimates = {name: FactorModel(*(part[trial] for part in fits[name])) for name in fits}
            estimates["SVD"] = _batch_fit(moments[trial], rank, trial)
            for name, estimate in estimates.items():
                yield {
                    "dimension": dimension,
                    "rank": rank,
                    "largest": largest,
                    "num_samples": size,
                    "trial": trial,
                    "algorithm": name,
                    **_distances(truth, estimate),
                }


class _Moments:
    """Mean and covariance of a stream, and its rows as long as they are few."""

    def __init__(self, dimension: int) -> None:
        self._rows: list[Array] | None = []
        self._count = 0
        self._sum = np.zeros(dimension)
        self._products = np.zeros((dimension, dimension))

    def add(self, rows: Array) -> None:
        self._count += len(rows)
        self._sum += rows.sum(axis=0)
        self._products += rows.T @ rows
        if self._rows is not None:
            self._rows.append(rows)
        if self._count > 2 * len(self._sum):
            self._rows = None

    def rows(self) -> tuple[Array, Array, int]:
        """Mean, rows with the stream's covariance around zero, and how many vectors they are."""
        mean = self._sum / self._count
        if self._rows is not None:
            return mean, np.concatenate(self._rows) - mean, self._count
        root = np.linalg.cholesky(self._products / self._count - np.outer(mean, mean)).T
        half = np.sqrt(len(mean)) * root
        return mean, np.concatenate([half, -half]), self._count


def _batch_fit(moments: _Moments, rank: int, seed: int) -> FactorModel:
    mean, rows, count = moments.rows()
    decomposition = import_optional("sklearn.decomposition", "cli")
    # scikit-learn compares the change of the whole likelihood, a sum over rows, with tol.
    fit = decomposition.FactorAnalysis(rank, tol=1e-2 * len(rows) / count, random_state=seed)
    fit.fit(rows)
    return FactorModel.from_arrays(mean, fit.components_.T, fit.noise_variance_)


def _distances(truth: FactorModel, estimate: FactorModel) -> dict[str, float]:
    covariances = truth.covariance(), estimate.covariance()
    return {
        "relative_distance": relative_frobenius_distance(*covariances),
        "wasserstein_distance": wasserstein_distance(
            (truth.mean, covariances[0]), (estimate.mean, covariances[1])
        ),
    }
