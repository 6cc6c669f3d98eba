"""Vectors to be observed, checked and in the dtype of what observes them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

__all__ = ["as_observations"]


def as_observations(
    values: tf.types.experimental.TensorLike, mean: tf.Tensor, *, num_leading: int = 0
) -> tf.Tensor:
    """Return vectors in the dtype of a mean of such vectors.

    Within compiled functions only what is known of the shape is checked.

    :param values: Numbers, [..., D], below further axes.
    :param mean: Mean of the vectors, [..., D].
    :param num_leading: How many further axes.
    :raises ValueError: If the values are not numbers, their shape is another, or, outside of
        compiled functions, one is not finite.
    """
    if not tf.is_tensor(values):
        values = np.asarray(values)
    dtype = tf.as_dtype(values.dtype)
    if not (dtype.is_floating or dtype.is_integer):
        raise ValueError(f"observations must be real numbers, got {dtype.name}.")
    observations = tf.cast(values, mean.dtype)
    expected = tf.TensorShape([None] * num_leading).concatenate(mean.shape)
    if not expected.is_compatible_with(observations.shape):
        raise ValueError(f"observations must have shape {expected}, got {observations.shape}.")
    if tf.executing_eagerly():
        _check_finite(observations)
    return observations


def _check_finite(observations: tf.Tensor) -> None:
    finite = tf.math.is_finite(observations)
    if not tf.reduce_all(finite):
        first = tuple(tf.where(~finite)[0].numpy().tolist())
        raise ValueError(
            f"observations must be finite, got {observations[first].numpy()} at {list(first)}."
        )
