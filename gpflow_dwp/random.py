"""Stateless random numbers: seeds, and noise that belongs to a point rather than to a row."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes

from gpflow_dwp.base import Seed

__all__ = ["as_seed", "normal_at_points", "split_seed"]

# SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014):
# an increment and two multipliers, as signed 64-bit integers, whose products wrap around.
_INCREMENT = 0x9E3779B97F4A7C15 - 2**64
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))
_LAST_SHIFT = 31


def as_seed(seed: int | tf.Tensor | None) -> Seed:
    """Make a stateless seed.

    :param seed: An integer, a stateless seed (which is returned as it is), or None for a fresh
        seed from TensorFlow's global generator (a new one at every call, also when compiled).
    :return: An integer tensor of shape [2].
    """
    if isinstance(seed, int | np.integer):
        seed = int(seed)
        return tf.constant([seed % 2**31, seed // 2**31 % 2**31], dtype=tf.int32)
    return tfp.random.sanitize_seed(seed)


def split_seed(seed: Seed, num: int) -> list[Seed]:
    """Split a seed into ``num`` independent ones.

    :param seed: A stateless seed, [2].
    :param num: How many are wanted.
    :return: A list of ``num`` stateless seeds.
    """
    return list(tf.unstack(tfp.random.split_seed(seed, n=num, salt="gpflow_dwp"), num=num))


@check_shapes("points: [N, D]", "seed: [2]", "return: [S, N, width]")
def normal_at_points(points: tf.Tensor, seed: Seed, num_samples: int, width: int) -> tf.Tensor:
    """Standard normal numbers that are a function of the seed and of each point's coordinates.

    Equal points get equal noise, whatever the batch in which they come: so a draw of a random
    function, evaluated point by point, does not depend on how the points are split into batches.
    Each point's coordinates and the seed are hashed into a key, which starts a SplitMix64 stream.

    :param points: Points, [N, D].
    :param seed: A stateless seed, [2].
    :param num_samples: S, the number of draws.
    :param width: How many numbers each draw has at each point.
    :return: Independent standard normal numbers, [S, N, width], of the dtype of ``points``.
    """
    keys = _hash_rows(points, seed)
    count = num_samples * width
    stream = keys[:, None] + _INCREMENT * tf.range(1, count + 1, dtype=tf.int64)
    bits = _mix(stream)
    digits = 24 if points.dtype == tf.float32 else 53
    integers = _logical_right_shift(bits, 64 - digits)
    # Rounding may bring the largest one to 1, whose quantile is infinite.
    uniform = tf.minimum((tf.cast(integers, points.dtype) + 0.5) * 2.0**-digits, 1.0 - 2.0**-digits)
    normal = tf.reshape(tf.math.ndtri(uniform), [-1, num_samples, width])
    return tf.transpose(normal, [1, 0, 2])


def _hash_rows(points: tf.Tensor, seed: Seed) -> tf.Tensor:
    # -0.0 is the same point as 0.0. (Graph optimisers take the addition of zero away.)
    positive_zero = tf.where(points == 0.0, tf.zeros_like(points), points)
    if points.dtype == tf.float64:
        bits = tf.bitcast(positive_zero, tf.int64)
    else:
        bits = tf.cast(tf.bitcast(positive_zero, tf.int32), tf.int64)
    columns = tf.range(1, tf.shape(points, out_type=tf.int64)[1] + 1, dtype=tf.int64)
    seed = tf.cast(seed, tf.int64)
    key = _mix(_mix(seed[0] + _INCREMENT) + seed[1])
    return _mix(tf.reduce_sum(_mix(_mix(bits) + _INCREMENT * columns), axis=1) + key)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    for shift, multiplier in _MULTIPLIERS:
        bits = tf.bitwise.bitwise_xor(bits, _logical_right_shift(bits, shift)) * multiplier
    return tf.bitwise.bitwise_xor(bits, _logical_right_shift(bits, _LAST_SHIFT))


def _logical_right_shift(bits: tf.Tensor, shift: int) -> tf.Tensor:
    # Right shifts of signed integers copy the sign bit; the mask takes the copies away.
    shift_tensor = tf.constant(shift, dtype=tf.int64)
    mask = tf.constant((1 << (64 - shift)) - 1, dtype=tf.int64)
    return tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, shift_tensor), mask)
