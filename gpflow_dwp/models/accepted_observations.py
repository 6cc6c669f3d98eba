"""What observations each likelihood takes: values, and columns."""

from __future__ import annotations

from collections.abc import Callable
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
    "observes_entries",
]


class AcceptedObservations(NamedTuple):
    """What observations, Y [N, P], a likelihood takes.

    :param expected: In words, to follow "Y must hold".
    :param accepts: From Y to Booleans of its shape, with TensorFlow operations. Y is finite, and 1
        where observations are missing.
    :param num_columns: Number of columns, P; None for one column for each latent function, where
        their number is not the likelihood's own, and for any number where it is.
    """

    expected: str = "finite numbers"
    accepts: Callable[[tf.Tensor], tf.Tensor] = lambda Y: tf.ones_like(Y, tf.bool)
    num_columns: int | None = None


def accepted_observations(likelihood: Likelihood) -> AcceptedObservations:
    """Return what observations a likelihood takes.

    A likelihood of the user's says so by a method of this name, without arguments; one that has
    none takes what the class of GPflow's does that it inherits from.
    """
    if hasattr(likelihood, "accepted_observations"):
        return likelihood.accepted_observations()  # type: ignore[no-any-return]
    of_kinds = (accepted for kind, accepted in _ACCEPTED.items() if isinstance(likelihood, kind))
    if (accepted := next(of_kinds, None)) is not None:
        return accepted
    if isinstance(likelihood, likelihoods.SwitchedLikelihood):
        return _switched(likelihood)
    if isinstance(likelihood, likelihoods.Ordinal):
        return _whole_numbers(int(likelihood.num_bins))
    if isinstance(likelihood, likelihoods.Softmax | likelihoods.MultiClass):
        of_classes = _whole_numbers(int(likelihood.latent_dim or 1), " in one column, not one-hot")
        return of_classes._replace(num_columns=1)
    return AcceptedObservations(num_columns=likelihood.observation_dim)


def observes_entries(likelihood: Likelihood) -> bool:
    """Whether a likelihood is a product over the entries of Y, each of one function's.

    Single entries may then be missing; of others, whole rows.
    """
    # A gamma posterior has no density at one precision, and a switch is no function's.
    others = GammaGaussian, likelihoods.SwitchedLikelihood
    is_scalar = isinstance(likelihood, likelihoods.ScalarLikelihood)
    return is_scalar and not isinstance(likelihood, others)


def count_functions(likelihood: Likelihood, num_columns: int) -> int:
    """Return Q, the latent functions that a likelihood needs for observations of P columns."""
    return int(likelihood.latent_dim or num_columns - _num_switches(likelihood))


def count_columns(likelihood: Likelihood, num_outputs: int | None) -> int | None:
    """Return P, the columns of observations, or None where they may be any.

    :param num_outputs: Number of latent functions, Q; None where that is not known.
    """
    own = accepted_observations(likelihood).num_columns
    if own is None and likelihood.latent_dim is None and num_outputs is not None:
        return num_outputs + _num_switches(likelihood)
    return own


def _num_switches(likelihood: Likelihood) -> int:
    """Columns of observations that say which of a likelihood's parts a row has."""
    return int(isinstance(likelihood, likelihoods.SwitchedLikelihood))


def _switched(likelihood: likelihoods.SwitchedLikelihood) -> AcceptedObservations:
    parts = [accepted_observations(each) for each in likelihood.likelihoods]

    def accepts(Y: tf.Tensor) -> tf.Tensor:
        values, index = Y[:, :-1], Y[:, -1:]
        known = [
            tf.equal(index, float(number)) & part.accepts(values)
            for number, part in enumerate(parts)
        ]
        every = tf.reduce_any(tf.stack(known), axis=0)
        return tf.concat([every, tf.reduce_any(every, axis=1, keepdims=True)], axis=1)

    index = f"the index of a likelihood, 0 to {len(parts) - 1}, in the last column"
    return AcceptedObservations(f"what each row's likelihood takes, and {index},", accepts)


def _is_whole(Y: tf.Tensor) -> tf.Tensor:
    return tf.equal(Y, tf.floor(Y))


def _whole_numbers(count: int, where: str = "") -> AcceptedObservations:
    return AcceptedObservations(
        f"whole numbers from 0 to {count - 1}{where}",
        lambda Y: _is_whole(Y) & (Y >= 0.0) & (count - 1.0 >= Y),
    )


_ACCEPTED: dict[type[Likelihood], AcceptedObservations] = {
    likelihoods.Bernoulli: AcceptedObservations(
        "0 or 1", lambda Y: tf.equal(Y, 0.0) | tf.equal(Y, 1.0)
    ),
    likelihoods.Beta: AcceptedObservations(
        "numbers strictly between 0 and 1", lambda Y: (Y > 0.0) & (Y < 1.0)
    ),
    likelihoods.Exponential: AcceptedObservations(
        "numbers that are not negative", lambda Y: Y >= 0.0
    ),
    likelihoods.Gamma: AcceptedObservations("positive numbers", lambda Y: Y > 0.0),
    likelihoods.Poisson: AcceptedObservations(
        "whole numbers from 0", lambda Y: _is_whole(Y) & (Y >= 0.0)
    ),
}
