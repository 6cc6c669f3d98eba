"""Factor analysis of a stream of vectors, which are seen once and not kept.

Brownlie, "Extending the Bayesian deep learning method MultiSWAG" (2021), chapter 4. Time and memory
for each vector grow with D K; no matrix of D by D is ever formed.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp.iterates.iterate_posterior import FactorModel
from gpflow_dwp.random import as_seed, normal
from gpflow_dwp.validation import check_integers, check_positive

__all__ = [
    "OnlineEM",
    "OnlineEMState",
    "OnlineFactorAnalysis",
    "OnlineGradientAscent",
    "OnlineGradientAscentState",
    "observe_all",
]


class OnlineEMState(NamedTuple):
    """Where :class:`OnlineEM` stands; all moments are averages over the vectors seen."""

    num_observations: tf.Tensor  # []
    mean: tf.Tensor  # [D]
    factors: tf.Tensor  # F, [D, K]
    variances: tf.Tensor  # ψ, [D]
    cross_moment: tf.Tensor  # of d mᵀ, [D, K]
    latent_moment: tf.Tensor  # of m mᵀ, [K, K]
    square_moment: tf.Tensor  # of d², [D]


class OnlineGradientAscentState(NamedTuple):
    """Where :class:`OnlineGradientAscent` stands."""

    num_observations: tf.Tensor  # []
    mean: tf.Tensor  # [D]
    factors: tf.Tensor  # F, [D, K]
    log_variances: tf.Tensor  # log ψ, [D]


StateT = TypeVar("StateT", OnlineEMState, OnlineGradientAscentState)


@dataclass(frozen=True)
class OnlineFactorAnalysis(abc.ABC, Generic[StateT]):
    """An algorithm: a start, a step, and the model that a state stands for.

    :param rank: Number of factors, K.
    :param warm_up: First vectors that enter the averages while F and ψ stay as they are.
    :param minimum_variance: Lower bound of ψ. Give the algorithm vectors of about unit variance.
    :raises ValueError: If a number is not a positive integer (``warm_up``: or zero), or the bound
        is not positive.
    """

    rank: int
    warm_up: int = 100
    minimum_variance: float = 1e-6

    def __post_init__(self) -> None:
        check_integers(rank=self.rank)
        check_integers(at_least=0, warm_up=self.warm_up)
        check_positive(minimum_variance=self.minimum_variance)

    def init(self, dimension: int, *, seed: int | tf.Tensor | None = 0) -> StateT:
        """Return the state before the first vector: orthonormal factors, ψ = 1.

        :param dimension: Length of the vectors, D.
        :param seed: Seed of the factors.
        :raises ValueError: If ``dimension`` is not an integer of at least K.
        """
        check_integers(at_least=self.rank, dimension=dimension)
        start = normal([dimension, self.rank], as_seed(seed), gpflow.default_float())
        factors = tf.linalg.qr(start).q
        return self._start(tf.zeros([], tf.int64), factors)

    def update(self, state: StateT, observation: tf.types.experimental.TensorLike) -> StateT:
        """Return the state after one more vector.

        :param state: The state before it.
        :param observation: The vector, [D].
        :raises ValueError: If it is not of this shape or, outside of compiled functions, not
            finite.
        """
        observation = _as_observations(observation, state.mean)
        count = state.num_observations + 1
        weight = 1.0 / tf.cast(count, state.mean.dtype)
        mean = state.mean + weight * (observation - state.mean)
        state = state._replace(num_observations=count, mean=mean)
        return self._step(state, weight, observation - mean)

    def model(self, state: StateT) -> FactorModel:
        """Return the model of what was seen so far.

        :param state: State of the algorithm.
        :raises ValueError: If no vectors were seen after the warm-up.
        """
        seen = int(state.num_observations)
        if seen <= self.warm_up:
            raise ValueError(
                f"warm_up must be below the number of vectors seen, {seen}, got {self.warm_up}: "
                "the factors are still those of the start."
            )
        return self._model(state)

    @abc.abstractmethod
    def _start(self, count: tf.Tensor, factors: tf.Tensor) -> StateT:
        """The state of no vectors and these factors."""

    @abc.abstractmethod
    def _step(self, state: StateT, weight: tf.Tensor, deviation: tf.Tensor) -> StateT:
        """The next state, where number and mean of the vectors are the new ones, from 1 over that
        number and what the last vector is off by."""

    @abc.abstractmethod
    def _model(self, state: StateT) -> FactorModel:
        """What :meth:`model` returns."""


@dataclass(frozen=True)
class OnlineEM(OnlineFactorAnalysis[OnlineEMState]):
    """Online expectation maximisation (algorithm 2).

    Each vector's latent mean m is computed once, with the factors of its time, and averaged; then
    the factors are those that fit the averages best.

    The warm-up, at least K, settles how many factors there can ever be. The rows of F, averages of
    d mᵀ times H⁻¹, lie in the span of the latent means seen so far, and with such an F so does
    every m after them. The first deviation, of a vector from itself, is zero; so a warm-up of w
    vectors and the one after it span at most w dimensions for good, and none where w is zero.

    Parameters and errors as for :class:`OnlineFactorAnalysis`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warm_up < self.rank:
            raise ValueError(
                f"warm_up must be at least rank, {self.rank}, got {self.warm_up}: fewer vectors "
                "cannot give OnlineEM as many factors."
            )

    def _start(self, count: tf.Tensor, factors: tf.Tensor) -> OnlineEMState:
        vector, cross_moment = tf.zeros_like(factors[:, 0]), tf.zeros_like(factors)
        moments = (cross_moment, cross_moment[: self.rank], vector)
        return OnlineEMState(count, vector, factors, tf.ones_like(vector), *moments)

    def _step(self, state: OnlineEMState, weight: tf.Tensor, deviation: tf.Tensor) -> OnlineEMState:
        latent, covariance = _latent_posterior(state.factors, state.variances, deviation)

        def averaged(moment: tf.Tensor, own: tf.Tensor) -> tf.Tensor:
            return moment + weight * (own - moment)

        cross_moment = averaged(state.cross_moment, _outer(deviation, latent))
        latent_moment = averaged(state.latent_moment, _outer(latent, latent))
        square_moment = averaged(state.square_moment, tf.square(deviation))
        factors = tf.matmul(cross_moment, _inverse(covariance + latent_moment))
        # Equation (4.35), where F H is the average of d mᵀ because F = A H⁻¹.
        explained = tf.reduce_sum(factors * cross_moment, axis=-1)
        variances = tf.maximum(square_moment - explained, self.minimum_variance)
        warm = state.num_observations > self.warm_up
        return state._replace(
            factors=tf.where(warm, factors, state.factors),
            variances=tf.where(warm, variances, state.variances),
            cross_moment=cross_moment,
            latent_moment=latent_moment,
            square_moment=square_moment,
        )

    def _model(self, state: OnlineEMState) -> FactorModel:
        return FactorModel(state.mean, state.factors, state.variances)


@dataclass(frozen=True)
class OnlineGradientAscent(OnlineFactorAnalysis[OnlineGradientAscentState]):
    """Online stochastic gradient ascent on the log-likelihood of F and log ψ (algorithm 1).

    Further parameters and errors as for :class:`OnlineFactorAnalysis`.

    :param learning_rate: Learning rate of both, positive.
    """

    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(learning_rate=self.learning_rate)

    def _start(self, count: tf.Tensor, factors: tf.Tensor) -> OnlineGradientAscentState:
        vector = tf.zeros_like(factors[:, 0])
        return OnlineGradientAscentState(count, vector, factors, vector)

    def _step(
        self, state: OnlineGradientAscentState, weight: tf.Tensor, deviation: tf.Tensor
    ) -> OnlineGradientAscentState:
        """Equations (4.24) to (4.26): with r = d - F m the gradients read ψ⁻¹ (r mᵀ - F Σ) and
        (ψ⁻¹ (r² + diag(F Σ Fᵀ)) - 1) / 2."""
        variances = tf.exp(state.log_variances)
        latent, covariance = _latent_posterior(state.factors, variances, deviation)
        residual = deviation - tf.linalg.matvec(state.factors, latent)
        spread = tf.matmul(state.factors, covariance)
        of_factors = (_outer(residual, latent) - spread) / variances[..., None]
        explained = tf.reduce_sum(spread * state.factors, axis=-1)
        of_log_variances = 0.5 * ((residual**2 + explained) / variances - 1.0)
        warm = tf.cast(state.num_observations > self.warm_up, weight.dtype)
        log_variances = state.log_variances + warm * self.learning_rate * of_log_variances
        return state._replace(
            factors=state.factors + warm * self.learning_rate * of_factors,
            log_variances=tf.maximum(log_variances, math.log(self.minimum_variance)),
        )

    def _model(self, state: OnlineGradientAscentState) -> FactorModel:
        return FactorModel(state.mean, state.factors, tf.exp(state.log_variances))


def observe_all(
    algorithm: OnlineFactorAnalysis[StateT],
    state: StateT,
    observations: tf.types.experimental.TensorLike,
) -> StateT:
    """Update a state by many vectors, in one compiled loop.

    :param algorithm: What made the state.
    :param state: The state before the first vector.
    :param observations: Vectors in their order, [T, D].
    :return: The state after the last one.
    :raises ValueError: If they are not of this shape or, outside of compiled functions, not finite.
    """
    observations = _as_observations(observations, state.mean, num_leading=1)
    return _compiled(algorithm)(state, observations)


@functools.cache
def _compiled(algorithm: OnlineFactorAnalysis[StateT]) -> Callable[[StateT, tf.Tensor], StateT]:
    @tf.function(autograph=False)
    def observe(state: StateT, observations: tf.Tensor) -> StateT:
        return tf.foldl(algorithm.update, observations, state)

    return observe


def _latent_posterior(
    factors: tf.Tensor, variances: tf.Tensor, deviation: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean [K] and covariance [K, K] of h given a vector (equation 4.23)."""
    weighted = factors / variances[..., None]
    identity = tf.eye(factors.shape[-1], dtype=factors.dtype)
    covariance = _inverse(identity + tf.matmul(weighted, factors, transpose_a=True))
    projected = tf.linalg.matvec(weighted, deviation, transpose_a=True)
    return tf.linalg.matvec(covariance, projected), covariance


def _as_observations(
    values: tf.types.experimental.TensorLike, mean: tf.Tensor, num_leading: int = 0
) -> tf.Tensor:
    """Vectors in the dtype of their mean, [D], below further axes."""
    observations = tf.cast(values if tf.is_tensor(values) else np.asarray(values), mean.dtype)
    expected = tf.TensorShape([None] * num_leading).concatenate(mean.shape)
    if not expected.is_compatible_with(observations.shape):
        raise ValueError(f"observations must have shape {expected}, got {observations.shape}.")
    if tf.executing_eagerly() and not np.all(np.isfinite(observations)):
        raise ValueError("observations must be finite.")
    return observations


def _outer(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    return first[:, None] * second


def _inverse(matrix: tf.Tensor) -> tf.Tensor:
    """Inverse of small positive definite matrices, [K, K]."""
    identity = tf.eye(matrix.shape[-1], dtype=matrix.dtype)
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix), identity)
