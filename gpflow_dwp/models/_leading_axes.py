"""Predictions at inputs with leading axes, [batch..., N, D], by methods for matrices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf
from gpflow.utilities import to_default_float

from gpflow_dwp.data.table import as_pair

__all__ = ["over_leading_axes"]

Method = TypeVar("Method", bound=Callable[..., Any])


def over_leading_axes(*, axis: int = 0) -> Callable[[Method], Method]:
    """Let a method of X [N, D], or of data X, Y, take [batch..., N, D], and return [batch..., ...].

    Points of one matrix may be joint (``full_cov``), those of different ones are not.

    :param axis: Of the points in what the method returns: 0 of two moments, [N, ...], and 1 of
        draws, [S, N, ...].
    """

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        (_, first, *_) = signature.parameters

        @functools.wraps(method)
        def for_any_rank(self: Any, *arguments: Any, **options: Any) -> Any:
            bound = signature.bind(self, *arguments, **options)
            rows = bound.arguments[first]
            rows = as_pair(rows) if first == "data" else (rows,)
            if min(map(_rank, rows)) <= 2:
                return method(self, *arguments, **options)
            rows = [to_default_float(part) for part in rows]

            def predict(*matrices: tf.Tensor) -> Any:
                bound.arguments[first] = matrices if first == "data" else matrices[0]
                return method(*bound.args, **bound.kwargs)

            leading = tf.shape(rows[0])[:-2]
            bound.apply_defaults()
            if bound.arguments.get("full_cov", False):
                return _one_by_one(predict, rows[0], leading, axis)
            return _all_at_once(predict, rows, leading, axis)

        return for_any_rank  # type: ignore[return-value]

    return decorate


def _rank(values: Any) -> int:
    shape = tf.TensorShape(getattr(values, "shape", None))
    return 2 if shape.rank is None else int(shape.rank)


def _one_by_one(predict: Callable[..., Any], X: tf.Tensor, leading: tf.Tensor, axis: int) -> Any:
    flat = tf.reshape(X, tf.concat([[-1], tf.shape(X)[-2:]], axis=0))
    flat = tf.ensure_shape(flat, [None, *X.shape[-2:]])
    signature = X.dtype if axis == 1 else (X.dtype, X.dtype)
    results = tf.map_fn(predict, flat, fn_output_signature=signature)

    def unfold(part: tf.Tensor) -> tf.Tensor:
        return tf.reshape(part, tf.concat([leading, tf.shape(part)[1:]], axis=0))

    return tf.nest.map_structure(unfold, results)


def _all_at_once(
    predict: Callable[..., Any], rows: list[tf.Tensor], leading: tf.Tensor, axis: int
) -> Any:
    count, num_points = len(rows[0].shape) - 2, tf.shape(rows[0])[-2:-1]

    def unfold(part: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(part)
        sizes = tf.concat([shape[:axis], leading, num_points, shape[axis + 1 :]], axis=0)
        unfolded = tf.reshape(part, sizes)
        first = [*range(axis, axis + count), *range(axis)]
        return tf.transpose(unfolded, [*first, *range(len(first), len(unfolded.shape))])

    flat = [tf.reshape(part, [-1, part.shape[-1]]) for part in rows]
    return tf.nest.map_structure(unfold, predict(*flat))
