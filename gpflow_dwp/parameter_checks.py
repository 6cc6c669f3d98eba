"""Parameters of bijectors and distributions: their dtype, static shapes, and admissible values.

They are tensors or variables, and come with the names of their arguments. A wrong shape always
raises a :class:`ValueError`. A wrong value raises one where it is known at construction, and is
asserted at run time, if the user asks for that with ``validate_args``, where it is not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.validation import as_real_array

__all__ = [
    "CheckedParameters",
    "Requirement",
    "assertions",
    "check_batch_shapes",
    "check_df",
    "check_event",
    "check_requirements",
    "convert_parameters",
    "finite_below_diagonal",
    "invertible",
    "matrix_shape",
    "positive",
    "positive_below_diagonal",
    "tril_with_nonzero_diagonal",
    "tril_with_positive_diagonal",
]


def convert_parameters(**parameters: Any) -> list[Any]:
    """Turn parameters into tensors of one dtype; variables are kept, to be read at each use.

    :param parameters: Tensors, variables, arrays or nested lists.
    :return: The parameters in the same order. Their dtype is that of the tensors and variables
        among them, which must have one of floating point, or GPflow's default where there are none.
    """
    dtypes = {n: tf.as_dtype(p.dtype) for n, p in parameters.items() if _is_tensor(p)}
    if len(set(dtypes.values())) > 1 or not all(dtype.is_floating for dtype in dtypes.values()):
        got = ", ".join(f"{name}: {dtype.name}" for name, dtype in dtypes.items())
        raise ValueError(f"Expected one floating-point dtype for all parameters, got {got}.")
    dtype = next(iter(dtypes.values()), tf.as_dtype(gpflow.default_float()))
    return [
        p if _is_tensor(p) else tf.constant(as_real_array(name, p), dtype, name=name)
        for name, p in parameters.items()
    ]


def _is_tensor(parameter: Any) -> bool:
    return tf.is_tensor(parameter) or _is_reference(parameter)


def _is_reference(parameter: Any) -> bool:
    return isinstance(parameter, tf.Variable | tfp.util.DeferredTensor)


def check_df(df: Any) -> int:
    """Return degrees of freedom, which must be an integer of at least 1, as a Python int."""
    if isinstance(df, int | np.integer) and not isinstance(df, bool) and df >= 1:
        return int(df)
    raise ValueError(f"df must be a Python int of at least 1, got {df!r}.")


def matrix_shape(name: str, matrix: Any, *, square: bool = False) -> tuple[int, int]:
    """Return the numbers of rows and columns of a batch of matrices, which must be known."""
    shape = tf.TensorShape(matrix.shape)
    expected = "[..., M, M]" if square else "[..., M, R]"
    if shape.rank is None or shape.rank < 2 or None in shape[-2:].as_list():
        raise ValueError(f"{name} must have a static shape {expected}, got shape {shape}.")
    rows, columns = shape[-2:].as_list()
    if square and rows != columns:
        raise ValueError(f"{name} must be square, {expected}, got shape {shape}.")
    return rows, columns


def check_event(name: str, parameter: Any, expected: Sequence[int], why: str) -> None:
    """Check that the last dimensions are known to have the expected sizes.

    :param why: What these sizes are, for the error message.
    """
    shape = tf.TensorShape(parameter.shape)
    ndims = len(expected)
    if shape.rank is None or shape.rank < ndims or shape[-ndims:].as_list() != list(expected):
        sizes = ", ".join(str(size) for size in expected)
        raise ValueError(f"{name} must have shape [..., {sizes}] ({why}), got shape {shape}.")


def check_batch_shapes(event_ndims: Mapping[str, int], parameters: Mapping[str, Any]) -> None:
    """Check that the batch dimensions of all parameters broadcast with each other.

    :param event_ndims: The number of trailing dimensions that are not of the batch, by name.
    """
    batch_shape = tf.TensorShape([])
    for name, parameter in parameters.items():
        own = tf.TensorShape(parameter.shape)[: -event_ndims[name]]
        try:
            batch_shape = tf.broadcast_static_shape(batch_shape, own)
        except ValueError as error:
            raise ValueError(
                f"{name} must have a batch shape that broadcasts with {batch_shape}, that of the "
                f"parameters before it, got batch shape {own}."
            ) from error


class CheckedParameters:
    """What asserts parameters' values: stands before TFP's class among a class's bases."""

    validate_args: bool

    def _requirements(self) -> list[Requirement]:
        raise NotImplementedError

    def _parameter_control_dependencies(self, is_init: bool) -> list[Any]:
        return assertions(self._requirements(), is_init=is_init) if self.validate_args else []


class Requirement(NamedTuple):
    """What the entries of a parameter must fulfil.

    :param condition: From the parameter, as an array or a tensor, to Booleans.
    :param expected: The condition in words.
    """

    name: str
    parameter: Any
    condition: Callable[[Any], Any]
    expected: str


def check_requirements(requirements: Sequence[Requirement]) -> None:
    """Check the parameters whose values are statically known."""
    for name, parameter, condition, expected in requirements:
        value = tf.get_static_value(parameter)
        if value is not None and not np.all(condition(value)):
            raise ValueError(f"{name} must have {expected}, got {value}.")


def assertions(requirements: Sequence[Requirement], *, is_init: bool) -> list[Any]:
    """Assert the requirements on values that are not statically known.

    :param is_init: Whether the object is being constructed: tensors are asserted then, and
        variables at each use.
    """
    return [
        tf.debugging.assert_equal(
            tf.reduce_all(condition(tf.convert_to_tensor(parameter))),
            True,
            message=f"{name} must have {expected}.",
        )
        for name, parameter, condition, expected in requirements
        if is_init != _is_reference(parameter) and tf.get_static_value(parameter) is None
    ]


# The conditions use only what NumPy arrays and tensors have in common, so that there is one
# definition of each.


def positive(x: Any) -> Any:
    """Where ``x`` is positive and finite."""
    return (x > 0.0) & _finite(x)


def positive_below_diagonal(x: Any) -> Any:
    """Where ``x`` is positive and finite, or on or above the diagonal."""
    return positive(x) | ~_below_diagonal(x)


def finite_below_diagonal(x: Any) -> Any:
    """Where ``x`` is finite, or on or above the diagonal."""
    return _finite(x) | ~_below_diagonal(x)


def tril_with_positive_diagonal(x: Any) -> Any:
    """Where the lower triangle is finite and its diagonal positive; what is above is ignored."""
    return finite_below_diagonal(x) & (positive(x) | ~_on_diagonal(x))


def tril_with_nonzero_diagonal(x: Any) -> Any:
    """Where the lower triangle is finite and its diagonal not zero; what is above is ignored."""
    return finite_below_diagonal(x) & (positive(abs(x)) | ~_on_diagonal(x))


def invertible(x: Any) -> Any:
    """Whether the matrices are finite and numerically invertible."""
    if not isinstance(x, np.ndarray):
        return _invertible_at_run_time(x)
    if not np.all(np.isfinite(x)):
        return np.array(False)
    # Scaling rows and columns keeps, say, diag(1e-20, 1) from being taken for singular.
    for axis in (-1, -2):
        largest = np.max(np.abs(x), axis=axis, keepdims=True)
        x = x / np.where(largest > 0.0, largest, 1.0)
    return np.linalg.matrix_rank(x) == x.shape[-1]


def _invertible_at_run_time(x: tf.Tensor) -> tf.Tensor:
    # By what a column adds to those before it. XLA has no log-determinant on the CPU.
    x = x / tf.reduce_max(tf.abs(x), axis=-1, keepdims=True)
    added = tf.abs(tf.linalg.diag_part(tf.linalg.qr(x).r))
    rounding = x.shape[-1] * np.finfo(x.dtype.as_numpy_dtype).eps
    # With an entry that is not finite, or a row of zeros, these are NaN, and nothing holds.
    return added > rounding * tf.linalg.norm(x, axis=-2)


def _finite(x: Any) -> Any:
    return abs(x) < np.inf


def _below_diagonal(x: Any) -> Any:
    return np.tri(operator.index(x.shape[-2]), operator.index(x.shape[-1]), -1, dtype=bool)


def _on_diagonal(x: Any) -> Any:
    return np.eye(operator.index(x.shape[-2]), operator.index(x.shape[-1]), dtype=bool)
