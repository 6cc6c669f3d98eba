"""How well online factor analysis recovers factor models (Brownlie, 2021, chapter 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from gpflow_dwp.lab.experiments.experiment import Experiment
from gpflow_dwp.optional import import_optional
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.validation import check_integers

__all__ = ["SAMPLE_SIZES", "FactorAnalysis"]

SAMPLE_SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Numbers of vectors after which the estimates are compared with the truth."""

_CHUNK = 1_000
_WARM_UP = 100


@dataclass(frozen=True)
class FactorAnalysis(Experiment):
    """Vectors drawn from factor models, fitted by online EM, online gradient ascent and batch SVD.

    All trials run at once, one stream each; trial t has seed t. The batch fit by scikit-learn needs
    the vectors' moments only, and gets, where there are more than 2 D vectors, 2 D rows with these
    very moments. The online algorithms start to learn after their warm-up of 100 vectors, or K if
    that is more, and have no row before: the thesis's points there are of the start.

    :param dimension: Length of the vectors, D.
    :param largest: Upper end of the spectrum, whose lower end is 1.
    :param trials: How many models.
    :param rank: K, of the models and of the fits.
    :param sample_sizes: Increasing numbers of vectors.
    """

    dimension: int
    largest: float
    trials: int = 10
    rank: int = 10
    sample_sizes: Sequence[int] = SAMPLE_SIZES

    key = ("dimension", "largest")
    groups = ("dimension", "largest", "num_samples", "algorithm")
    values = ("relative_distance", "wasserstein_distance")

    def check(self) -> None:
        check_integers(trials=self.trials, rank=self.rank)
        check_integers(at_least=self.rank, dimension=self.dimension)
        for index, size in enumerate(self.sample_sizes):
            check_integers(at_least=self.rank, **{f"sample_sizes[{index}]": size})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return both distances for each number of vectors, trial and algorithm."""
        warm_up = max(_WARM_UP, self.rank)
        models = [
            generate_factor_model(self.dimension, self.rank, (1.0, self.largest), seed=trial)
            for trial in range(self.trials)
        ]
        algorithms: dict[str, OnlineFactorAnalysis[Any]] = {
            "EM": OnlineEM(self.rank, warm_up=warm_up),
            "SGA": OnlineGradientAscent(self.rank, warm_up=warm_up),
        }
        states = {
            name: algorithm.init(self.dimension, batch_shape=(self.trials,), seed=1)
            for name, algorithm in algorithms.items()
        }
        moments = [_Moments(self.dimension) for _ in models]
        seen = 0
        for size in self.sample_sizes:
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
            fits = {n: algorithms[n].model(s) for n, s in states.items() if size > warm_up}
            for trial, truth in enumerate(models):
                estimates = {n: FactorModel(*(part[trial] for part in fits[n])) for n in fits}
                estimates["SVD"] = _batch_fit(moments[trial], self.rank, trial)
                for name, estimate in estimates.items():
                    yield {
                        "dimension": self.dimension,
                        "rank": self.rank,
                        "largest": self.largest,
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
