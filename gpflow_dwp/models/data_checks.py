"""The one gate through which data come to a model, and what each likelihood takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import default_float
from gpflow.base import InputData, TensorData
from gpflow.functions import MeanFunction
from gpflow.likelihoods import Likelihood

from gpflow_dwp.likelihoods.observed import accepted_observations, observed
from gpflow_dwp.validation import (
    as_real_array,
    as_weighted,
    check_matrix,
    check_process,
    check_weights,
)

__all__ = [
    "Batch",
    "check_batch",
    "check_data",
    "check_inputs",
    "check_mean_function",
    "check_observations",
    "count_columns",
]


def count_columns(likelihood: Likelihood, num_outputs: int | None) -> int | None:
    """Return P, the columns of observations, or None where they may be any.

    :param num_outputs: Number of latent functions, Q; None where that is not known.
    """
    own = accepted_observations(likelihood).num_columns
    if own is None and likelihood.latent_dim is None and num_outputs is not None:
        return num_outputs + observed(likelihood).num_switches
    return own


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
        if not observed(likelihood).by_entry:  # whole rows may be missing only
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
