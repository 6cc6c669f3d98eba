"""Predictions at inputs with leading axes, [batch..., N, D], by methods for matrices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf
from gpflow.utilities import to_default_float

from gpflow_dwp.autograph import without_autograph
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
            bound.apply_defaults()
            given = bound.arguments[first]
            rows = as_pair(given) if first == "data" else (given,)
            if min(tf.TensorShape(getattr(part, "shape", None)).rank or 0 for part in rows) <= 2:
                return method(self, *arguments, **options)
            parts = [to_default_float(part) for part in rows]
            X, leading = parts[0], tf.shape(parts[0])[:-2]

            def predict(*matrices: tf.Tensor) -> Any:
                bound.arguments[first] = matrices if first == "data" else matrices[0]
                return method(*bound.args, **bound.kwargs)

            if bound.arguments.get("full_cov", False):
                flat = tf.reshape(X, tf.concat([[-1], tf.shape(X)[-2:]], axis=0))
                flat = tf.ensure_shape(flat, [None, *X.shape[-2:]])
                kind = X.dtype if axis == 1 else (X.dtype, X.dtype)
                results = tf.map_fn(predict, flat, fn_output_signature=kind)
                return tf.nest.map_structure(lambda part: _split(part, 0, 0, leading), results)
            results = predict(*(tf.reshape(part, [-1, part.shape[-1]]) for part in parts))
            sizes = tf.concat([leading, tf.shape(X)[-2:-1]], axis=0)
            count = len(X.shape) - 2
            return tf.nest.map_structure(lambda part: _split(part, axis, count, sizes), results)

        return cast(Method, without_autograph(for_any_rank))

    return decorate


def _split(part: tf.Tensor, axis: int, count: int, sizes: tf.Tensor) -> tf.Tensor:
    """Make several axes of one, and bring the first ``count`` of them to the front."""
    shape = tf.shape(part)
    split = tf.reshape(part, tf.concat([shape[:axis], sizes, shape[axis + 1 :]], axis=0))
    if not axis:
        return split
    moved = [*range(axis, axis + count), *range(axis)]
    return tf.transpose(split, [*moved, *range(len(moved), len(split.shape))])
