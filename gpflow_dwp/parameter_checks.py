"""Parameters of bijectors and distributions: their dtype, static shapes, and admissible values.

They are tensors or variables, and come with the names of their arguments. A wrong shape raises a
:class:`ValueError`, and so does a wrong value where it is known at construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.validation import as_real_array

__all__ = [
    "check_df",
    "check_event",
    "check_tril",
    "check_values",
    "convert_parameters",
    "invertible",
    "matrix_shape",
    "positive",
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
    return tf.is_tensor(parameter) or isinstance(parameter, tf.Variable | tfp.util.DeferredTensor)


def check_df(df: Any, size: int) -> float:
    """Return degrees of freedom of matrices [M, M]: an integer from 1, or a number above M - 1."""
    if isinstance(df, int | float | np.number) and not isinstance(df, bool) and df < np.inf:
        if df == int(df) and df >= 1:
            return int(df)
        if df > size - 1:
            return float(df)
    raise ValueError(
        f"df must be an integer of at least 1, or any number above M - 1 = {size - 1}, got {df!r}."
    )


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


def check_values(
    name: str, parameter: Any, condition: Callable[[npt.NDArray[Any]], Any], expected: str
) -> None:
    """Check a parameter whose values are statically known.

    :param condition: From an array to Booleans.
    :param expected: The condition in words.
    """
    value = tf.get_static_value(parameter)
    if value is not None and not np.all(condition(value)):
        raise ValueError(f"{name} must have {expected}, got {value}.")


def check_tril(name: str, tril: Any) -> None:
    """Check that the lower triangle is finite with a positive diagonal; above it is ignored."""

    def condition(x: npt.NDArray[Any]) -> Any:
        return np.isfinite(np.tril(x)) & (positive(x) | ~np.eye(x.shape[-1], dtype=bool))

    check_values(name, tril, condition, "finite entries and a positive diagonal")


def positive(x: npt.NDArray[Any]) -> Any:
    """Where ``x`` is positive and finite."""
    return (x > 0.0) & (x < np.inf)


def invertible(x: npt.NDArray[Any]) -> Any:
    """Whether the matrices are finite and numerically invertible."""
    if not np.all(np.isfinite(x)):
        return False
    # Scaling rows and columns keeps, say, diag(1e-20, 1) from being taken for singular.
    for axis in (-1, -2):
        largest = np.max(np.abs(x), axis=axis, keepdims=True)
        x = x / np.where(largest > 0.0, largest, 1.0)
    return np.linalg.matrix_rank(x) == x.shape[-1]
