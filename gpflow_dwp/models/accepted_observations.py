"""What observations each likelihood takes: values, and columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import tensorflow as tf
from gpflow import likelihoods
from gpflow.likelihoods import Likelihood

from gpflow_dwp.likelihoods import GammaGaussian

__all__ = [
    "AcceptedObservations",
    "accepted_observations",
    "count_columns",
    "count_functions",
    "has_observation",
    "is_accepted",
    "observes_entries",
]


class AcceptedObservations(NamedTuple):
    """What observations, Y [N, P], a likelihood takes.

    :param expected: In words, to follow "Y must hold".
    :param accepts: From Y to Booleans of its shape, with TensorFlow operations. Y is finite, and 1
        where observations are missing.
    :param num_columns: Number of columns, P; None for one column for each latent function, where
        their number is not the likelihood's own, and for any number where it is.
    :param num_labels: Columns of Y that come after those and have no latent function.
    """

    expected: str = "finite numbers"
    accepts: Callable[[tf.Tensor], tf.Tensor] = lambda Y: tf.ones_like(Y, tf.bool)
    num_columns: int | None = None
    num_labels: int = 0


def accepted_observations(likelihood: Likelihood) -> AcceptedObservations:
    """Return what observations a likelihood takes.

    A likelihood of the user's says so by a method of this name, without arguments; one that has
    none takes what the nearest of GPflow's classes does that it inherits from.
    """
    own = getattr(likelihood, "accepted_observations", None)
    return _accepted(likelihood) if own is None else own()


def observes_entries(likelihood: Likelihood) -> bool:
    """Whether a likelihood is a product over the entries of Y, each of one function's.

    Single entries may then be missing; of others, whole rows.
    """
    # The parts of a switched one differ, and a gamma posterior has no density at one precision.
    others = likelihoods.SwitchedLikelihood | GammaGaussian
    return isinstance(likelihood, likelihoods.ScalarLikelihood) and not isinstance(
        likelihood, others
    )


def has_observation(likelihood: Likelihood, Y: tf.Tensor) -> tf.Tensor:
    """Return which rows of Y, [N, P], are not missing as a whole, [N]."""
    num_values = tf.shape(Y)[1] - accepted_observations(likelihood).num_labels
    return ~tf.reduce_all(tf.math.is_nan(Y[:, :num_values]), axis=1)


def is_accepted(likelihood: Likelihood, Y: tf.Tensor) -> tf.Tensor:
    """Return which entries of Y, [N, P], are what a likelihood takes, or may be missing (NaN)."""
    accepted, missing = accepted_observations(likelihood), tf.math.is_nan(Y)
    right = missing | accepted.accepts(tf.where(missing, tf.ones_like(Y), Y))
    if observes_entries(likelihood):
        return right
    num_labels = accepted.num_labels
    values = missing[:, : tf.shape(Y)[1] - num_labels]
    whole = tf.reduce_all(values, axis=1, keepdims=True) & tf.ones_like(values)
    may_miss = tf.concat([whole, tf.zeros_like(missing[:, :num_labels])], axis=1)
    return right & (may_miss | ~missing)


def count_functions(likelihood: Likelihood, num_columns: int) -> int:
    """Return Q, the latent functions that a likelihood needs for observations of P columns.

    :raises ValueError: If P leaves no column for a function.
    """
    if likelihood.latent_dim is not None:
        return int(likelihood.latent_dim)
    num_labels = accepted_observations(likelihood).num_labels
    if num_columns <= num_labels:
        raise ValueError(
            f"Y must have at least {num_labels + 1} columns for a {type(likelihood).__name__}, "
            f"of which the last {num_labels} are labels, got {num_columns}."
        )
    return num_columns - num_labels


def count_columns(likelihood: Likelihood, num_outputs: int | None) -> int | None:
    """Return P, the columns of observations, or None where they may be any.

    :param num_outputs: Number of latent functions, Q; None where that is not known.
    """
    accepted = accepted_observations(likelihood)
    if accepted.num_columns is None and likelihood.latent_dim is None and num_outputs is not None:
        return num_outputs + accepted.num_labels
    return accepted.num_columns


def _is_whole(Y: tf.Tensor) -> tf.Tensor:
    return tf.equal(Y, tf.floor(Y))


@singledispatch
def _accepted(likelihood: Likelihood) -> AcceptedObservations:
    return AcceptedObservations(num_columns=likelihood.observation_dim)


def _whole_numbers(count: int, where: str = "") -> AcceptedObservations:
    return AcceptedObservations(
        f"whole numbers from 0 to {count - 1}{where}",
        lambda Y: _is_whole(Y) & (Y >= 0.0) & (count - 1.0 >= Y),
    )


def _of_classes(likelihood: Likelihood) -> AcceptedObservations:
    accepted = _whole_numbers(int(likelihood.latent_dim or 1), " in one column, not one-hot")
    return accepted._replace(num_columns=1)


for _kind, _of_kind in {
    likelihoods.Bernoulli: lambda _: AcceptedObservations(
        "0 or 1 in one column", lambda Y: tf.equal(Y, 0.0) | tf.equal(Y, 1.0), num_columns=1
    ),
    likelihoods.Beta: lambda _: AcceptedObservations(
        "numbers strictly between 0 and 1", lambda Y: (Y > 0.0) & (Y < 1.0)
    ),
    likelihoods.Exponential: lambda _: AcceptedObservations(
        "numbers that are not negative", lambda Y: Y >= 0.0
    ),
    likelihoods.Gamma: lambda _: AcceptedObservations("positive numbers", lambda Y: Y > 0.0),
    likelihoods.Poisson: lambda _: AcceptedObservations(
        "whole numbers from 0", lambda Y: _is_whole(Y) & (Y >= 0.0)
    ),
    likelihoods.Ordinal: lambda likelihood: _whole_numbers(int(likelihood.num_bins)),
    likelihoods.Softmax: _of_classes,
    likelihoods.MultiClass: _of_classes,
}.items():
    _accepted.register(_kind, _of_kind)


@_accepted.register
def _switched(likelihood: likelihoods.SwitchedLikelihood) -> AcceptedObservations:
    parts = [accepted_observations(part) for part in likelihood.likelihoods]

    def accepts(Y: tf.Tensor) -> tf.Tensor:
        values, labels = Y[:, :-1], Y[:, -1:]
        right = tf.zeros_like(values, tf.bool)
        for index, part in enumerate(parts):
            right |= tf.equal(labels, float(index)) & part.accepts(values)
        is_part = _is_whole(labels) & (labels >= 0.0) & (labels <= len(parts) - 1.0)
        return tf.concat([right | ~is_part, is_part], axis=1)

    each = "; ".join(f"{index}: {part.expected}" for index, part in enumerate(parts))
    expected = f"in the last column the number of each row's likelihood, and before it ({each})"
    return AcceptedObservations(expected, accepts, num_labels=1)
