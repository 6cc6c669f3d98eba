"""Likelihoods under a mixture: one Gaussian over functions for each of S draws."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.likelihoods import Likelihood, MonteCarloLikelihood

from gpflow_dwp.base import Seed, sizes
from gpflow_dwp.likelihoods import NormalMixture
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.random import TargetNoise

__all__ = [
    "expected_log_likelihoods",
    "mixture_moments",
    "predictive_log_densities",
    "predictive_moments",
    "warped_moments",
]


@check_shapes("X: [N, D]", "Y: [N, P]", "mean: [S, NK, Q]", "variance: [S, NK, columns...]")
def expected_log_likelihoods(
    likelihood: Likelihood,
    X: tf.Tensor,
    Y: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    num_copies: int | tf.Tensor | None = None,
    *,
    seed: Seed | None = None,
) -> tf.Tensor:
    """Return E log p(y_n | f_n) under each draw's Gaussian, [S, N].

    :param likelihood: Any GPflow likelihood.
    :param X: Inputs, which a likelihood may read.
    :param Y: Observations, of which NaN are missing: what a likelihood says of each entry on its
        own (GPflow's ``ScalarLikelihood``) is summed over those that are there, and of others a
        row with a missing value adds 0.
    :param mean: Mean of f.
    :param variance: Variance of f, [S, N] where its columns share it, or [S, N, Q].
    :param num_copies: K, where there are K rows of f in succession for each of X and Y: then the
        result is [S, N, K].
    :param seed: A stateless seed, [2], for likelihoods that integrate by Monte Carlo, by numbers
        that are a function of each row of X, or of its place where there are copies. None for
        TensorFlow's global generator.
    """
    keys = X
    if num_copies is not None:
        X, Y = (tf.repeat(rows, num_copies, axis=0) for rows in (X, Y))
        keys = None
    num_targets = sizes(mean)[1]
    method = _seeded(likelihood, "variational_expectations", mean, seed, num_targets, keys)
    of_observed = functools.partial(_of_observed, likelihood, method)
    values = _fold_draws(of_observed, X, mean, variance, Y)
    return values if num_copies is None else tf.reshape(values, [sizes(mean)[0], -1, num_copies])


@check_shapes(
    "X: [N, D]", "Y: [N, P]", "mean: [S, N, Q]", "variance: [S, N, columns...]", "return: [S, N]"
)
def predictive_log_densities(
    likelihood: Likelihood,
    X: tf.Tensor,
    Y: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    *,
    seed: Seed | None = None,
) -> tf.Tensor:
    """Return log E p(y_n | f_n) under each draw's Gaussian: see :func:`expected_log_likelihoods`.

    :param seed: A stateless seed, [2], for likelihoods that integrate by Monte Carlo: each draw
        then has the same numbers at all points. None for TensorFlow's global generator.
    """
    method = _seeded(likelihood, "predict_log_density", mean, seed)
    of_observed = functools.partial(_of_observed, likelihood, method)
    return _fold_draws(of_observed, X, mean, variance, Y)


@check_shapes(
    "X: [N, D]",
    "mean: [S, N, Q]",
    "variance: [S, N, columns...]",
    "return[0]: [S, N, P]",
    "return[1]: [S, N, P]",
)
def predictive_moments(
    likelihood: Likelihood,
    X: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    *,
    seed: Seed | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return mean and variance of y_n: see :func:`predictive_log_densities`."""
    method = _seeded(likelihood, "predict_mean_and_var", mean, seed)
    y_mean, y_variance = _fold_draws(method, X, mean, variance)
    return y_mean, y_variance


@check_shapes(
    "X: [N, D]",
    "mean: [S, N, Q]",
    "variance: [S, N, columns...]",
    "return[0]: [K, N, P]",
    "return[1]: [K, N, P]",
)
def warped_moments(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return mean and variance of g(y_n), which is normal, under each draw's Gaussian.

    Of a :class:`NormalMixture` it is so given each node: K = S times their number, the draws of the
    first node first. Else K = S. Parameters as for :func:`expected_log_likelihoods`.
    """
    if not isinstance(likelihood, NormalMixture):
        moments = _fold_draws(likelihood.warped_mean_and_variance, X, mean, variance)
        return moments[0], moments[1]

    def rows_first(*moments: tf.Tensor) -> list[tf.Tensor]:
        found = likelihood.warped_components(*moments)
        return [tf.transpose(moment, [1, 0, 2]) for moment in found]

    def nodes_first(moment: tf.Tensor) -> tf.Tensor:
        by_node = tf.transpose(moment, [2, 0, 1, 3])
        return tf.reshape(by_node, tf.concat([[-1], tf.shape(by_node)[2:]], axis=0))

    first, second = map(nodes_first, _fold_draws(rows_first, X, mean, variance))
    return first, second


@check_shapes(
    "means: [S, N, Q]",
    "covariances: [S, columns..., N, N] if full_cov",
    "covariances: [S, N, columns...] if not full_cov",
    "return[0]: [N, Q]",
    "return[1]: [Q, N, N] if full_cov",
    "return[1]: [N, Q] if not full_cov",
)
def mixture_moments(
    means: tf.Tensor, covariances: tf.Tensor, *, full_cov: bool = False
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return mean and covariance of an equally weighted mixture, by the law of total variance.

    :param means: Mean of each component.
    :param covariances: Variance of each component, [S, N, Q], or with ``full_cov`` its covariance
        over points, [S, Q, N, N]; without the axis of Q where all outputs share one.
    :param full_cov: Whether covariances between points are wanted.
    """
    mean = tf.reduce_mean(means, axis=0)
    deviations, count = means - mean, tf.cast(tf.shape(means)[0], means.dtype)
    between = "snq,smq->qnm" if full_cov else "snq,snq->nq"
    within = tf.reduce_mean(covariances, axis=0)
    if covariances.shape.rank < (4 if full_cov else 3):
        within = tf.expand_dims(within, 0 if full_cov else -1)
    return mean, tf.einsum(between, deviations, deviations) / count + within


def _seeded(
    likelihood: Likelihood,
    name: str,
    mean: tf.Tensor,
    seed: Seed | None,
    num_targets: int | tf.Tensor = 1,
    keys: tf.Tensor | None = None,
) -> Callable[..., tf.Tensor]:
    """A method of a likelihood, with the numbers of its Monte Carlo integrals fixed.

    :param num_targets: Of how many targets there are numbers: N, or 1 where all share them.
    :param keys: As for :class:`TargetNoise`.
    """
    method = getattr(likelihood, name)
    if seed is None or not isinstance(likelihood, MonteCarloLikelihood):
        return method
    # GPflow takes the numbers in the methods behind the public ones only.
    inner = getattr(likelihood, f"_{name}")
    if "epsilon" not in inspect.signature(inner).parameters:
        return method
    count, (S, N, Q) = likelihood.num_monte_carlo_points, sizes(mean)
    numbers = TargetNoise(seed, count * S, num_targets, mean.dtype, keys).normal(Q)
    epsilon = tf.reshape(tf.broadcast_to(numbers, [count * S, N, Q]), [count, -1, Q])
    return functools.partial(inner, epsilon=epsilon)


def _fold_draws(
    method: Callable[..., Any], X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, *Y: tf.Tensor
) -> Any:
    """Call a likelihood's method with the draws folded into the data axis, and unfold the result.

    Some likelihoods refuse a leading axis of draws; none refuses more rows.
    """
    shape, width = tf.shape(mean), mean.shape[-1]
    columns = variance if variance.shape.rank == 3 else tf.expand_dims(variance, -1)
    moments = (tf.reshape(each, [-1, width]) for each in (mean, tf.broadcast_to(columns, shape)))
    X, *tiled = (tf.tile(rows, [shape[0], 1]) for rows in (X, *Y))
    return tf.nest.map_structure(
        lambda rows: tf.reshape(rows, tf.concat([shape[:2], tf.shape(rows)[1:]], axis=0)),
        method(X, *moments, *tiled),
    )


def _of_observed(
    likelihood: Likelihood,
    method: Callable[..., tf.Tensor],
    X: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    Y: tf.Tensor,
) -> tf.Tensor:
    """A method's number for each row, [N], of those observations that are not NaN."""
    # In place of a missing observation the method gets y = 1 at f = 0, without variance, for which
    # it returns log p(y | f): that is taken off again.
    missing = tf.math.is_nan(tf.cast(Y, mean.dtype))
    filled = tf.where(missing, tf.ones_like(Y), Y)
    if not observed(likelihood).by_entry:
        values = method(X, mean, variance, observed(likelihood).labels(filled))
        return tf.where(tf.reduce_any(missing, axis=-1), tf.zeros_like(values), values)
    mean, variance = (tf.where(missing, tf.zeros_like(part), part) for part in (mean, variance))
    added = likelihood._scalar_log_prob(X, mean, filled)
    # Without keepdims the gradient puts a shape together on a GPU, which the host waits for.
    added = tf.reduce_sum(tf.where(missing, added, tf.zeros_like(added)), axis=-1, keepdims=True)
    return method(X, mean, variance, filled) - tf.squeeze(added, axis=-1)
