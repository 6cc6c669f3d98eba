"""The one gate through which data come to a model, and what each likelihood takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import default_float, likelihoods
from gpflow.base import InputData, TensorData
from gpflow.functions import MeanFunction
from gpflow.likelihoods import Likelihood

from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.validation import (
    as_real_array,
    as_weighted,
    check_matrix,
    check_process,
    check_weights,
)

__all__ = [
    "AcceptedObservations",
    "Batch",
    "accepted_observations",
    "check_batch",
    "check_data",
    "check_inputs",
    "check_mean_function",
    "check_observations",
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


class Batch(NamedTuple):
    """Inputs X, [N, D], observations Y, [N, P], and how often each row counts, [N], if not once."""

    X: tf.Tensor
    Y: tf.Tensor
    weights: tf.Tensor | None = None


def check_data(model: Any, X: TensorData, Y: TensorData) -> tuple[tf.Tensor, tf.Tensor]:
    """Return inputs and observations as tensors of GPflow's default float, if a model takes them.

    Values are checked where they are known: not while a function is being compiled.

    :param model: The model, or its posterior: what has ``num_inputs``, ``num_outputs`` and a
        ``likelihood``.
    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P]; NaN or masked where they are missing.
    :raises ValueError: If they are no matrices of finite real numbers of one length (but for
        missing observations), X does not have the model's columns, or Y is not what the likelihood
        takes; the message says where.
    """
    for name in ("variance", "scale", "shape"):
        value = getattr(model.likelihood, name, None)
        if isinstance(value, int | float | np.ndarray):
            raise ValueError(
                f"likelihood.{name} must be a parameter, got {value!r}: "
                f"likelihood.{name}.assign(...) sets the value of one."
            )
    X, Y = check_inputs(model, X), check_observations(model.likelihood, Y, model.num_outputs)
    if not X.shape[:1].is_compatible_with(Y.shape[:1]):
        raise ValueError(
            f"X and Y must have as many rows as each other, got {X.shape[0]} and {Y.shape[0]}."
        )
    return X, Y


def check_batch(model: Any, data: Any) -> Batch:
    """As :func:`check_data`, of a pair, or of three with weights [N] that are not all zero.

    :raises ValueError: If a row has no observation, too: it would count in means over rows.
    """
    X, Y, weights = as_weighted(data)
    X, Y = check_data(model, X, Y)
    if tf.executing_eagerly():
        empty = np.flatnonzero(np.isnan(Y).all(axis=1))
        if len(empty):
            raise ValueError(
                f"Y must hold an observation in each row, got none in row {empty[0] + 1}: leave "
                "out rows without any."
            )
    if weights is None:
        return Batch(X, Y)
    if tf.executing_eagerly():
        weights = check_weights(weights, int(X.shape[0]))
    weights = tf.cast(tf.convert_to_tensor(weights), default_float())
    return Batch(X, Y, tf.ensure_shape(weights, X.shape[:1]))


def check_inputs(model: Any, X: InputData, name: str = "X") -> tf.Tensor:
    """As :func:`check_data`, of inputs alone, which messages call by a name."""
    check_process()
    return _with_columns(name, _as_matrix(name, X), model.num_inputs)


def check_observations(
    likelihood: Likelihood, Y: TensorData, num_outputs: int | None = None
) -> tf.Tensor:
    """As :func:`check_data`, of observations alone.

    :param num_outputs: Number of latent functions, Q; None where that is not known.
    """
    Y, accepted = _as_matrix("Y", Y, may_miss=True), accepted_observations(likelihood)
    expected = f"{accepted.expected} for the likelihood {type(likelihood).__name__}"
    num_columns = count_columns(likelihood, num_outputs)
    if num_columns is not None:
        Y = _with_columns("Y", Y, num_columns, f": {expected}")
    if tf.executing_eagerly():
        missing = np.isnan(Y)
        right = missing | accepted.accepts(tf.where(missing, tf.ones_like(Y), Y)).numpy()
        if not observes_entries(likelihood):  # whole rows may be missing only
            right &= ~missing | missing.all(axis=1, keepdims=True)
        wrong = np.argwhere(~right)
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(
                f"Y must hold {expected}, got {Y[row, column].numpy():g} in row {row + 1}, "
                f"column {column + 1}."
            )
    return Y


def _as_matrix(name: str, values: Any, *, may_miss: bool = False) -> tf.Tensor:
    if isinstance(values, np.ndarray) or not tf.is_tensor(values):  # the latter takes long
        values = as_real_array(name, values, may_miss=may_miss)
    elif not (values.dtype.is_floating or values.dtype.is_integer or values.dtype.is_bool):
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype.name}.")
    matrix = tf.cast(tf.convert_to_tensor(values), default_float())
    # No rows are a mistake in training, which asks for num_data of them, but can be predicted.
    if tf.executing_eagerly() and matrix.shape.num_elements():
        check_matrix(name, matrix.numpy(), may_miss=may_miss)
    elif matrix.shape.rank not in (None, 2):
        raise ValueError(f"{name} must have two axes, [rows, columns], got shape {matrix.shape}.")
    return matrix


def _with_columns(name: str, matrix: tf.Tensor, columns: int, why: str = "") -> tf.Tensor:
    if not matrix.shape.is_compatible_with([None, columns]):
        raise ValueError(
            f"{name} must have {columns} column{'s' * (columns != 1)}, as the model has{why}, got "
            f"shape {matrix.shape}."
        )
    return matrix if tf.executing_eagerly() else tf.ensure_shape(matrix, [None, columns])


def check_mean_function(mean_function: MeanFunction, num_inputs: int, num_outputs: int) -> None:
    """Refuse, by a :class:`ValueError`, a mean function that returns other columns."""
    points, expected = tf.zeros([3, num_inputs], default_float()), [3, num_outputs]
    if (found := mean_function(points).shape) != expected:
        raise ValueError(
            f"mean_function must return shape {expected} for inputs of shape {points.shape}, "
            f"got {found}."
        )
