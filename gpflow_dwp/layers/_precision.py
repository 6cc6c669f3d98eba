"""Tensors that belong together, in another precision."""

from __future__ import annotations

from typing import TypeVar

import tensorflow as tf

__all__ = ["in_dtype"]

PartsT = TypeVar("PartsT")


def in_dtype(parts: PartsT, dtype: tf.DType) -> PartsT:
    """Return a tuple of tensors with every part cast to ``dtype``; None stays."""

    def cast(part: tf.Tensor | None) -> tf.Tensor | None:
        return None if part is None else tf.cast(part, dtype)

    return tf.nest.map_structure(cast, parts)
