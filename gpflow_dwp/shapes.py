"""Sizes of tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

__all__ = ["sizes"]


def sizes(tensor: tf.Tensor) -> list[Any]:
    """Return the sizes of a tensor's axes, as integers where a graph need not work them out.

    :param tensor: Of known rank.
    """
    known = tensor.shape.as_list()
    if None not in known:
        return known
    found = tf.unstack(tf.shape(tensor))
    return [size if size is not None else found[axis] for axis, size in enumerate(known)]
