"""Stateless random numbers that are the same in eager, compiled and XLA code.

TensorFlow's own real-valued draws are not, but its integers of a named algorithm are: everything
here is made of those. Its functions for them add some 45 nodes to a graph with every call, most of
them to scramble the seed; here the same numbers take a third of that. None of them takes a number
off a GPU: there TensorFlow splits, stacks and slices integers of 32 bits on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes

from gpflow_dwp.base import Seed, sizes

__all__ = [
    "TargetNoise",
    "ZeroNoise",
    "as_generator",
    "as_seed",
    "fold_in",
    "hash_rows",
    "normal",
    "normal_at_points",
    "random_order",
    "split_seed",
    "uniform",
]

# What TensorFlow scrambles seeds with.
_SCRAMBLING_KEY = np.array([0x02461E293EC8F720], np.uint64)

# SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014):
# an increment and two multipliers, of 64-bit integers, whose products wrap around.
_INCREMENT = 0x9E3779B97F4A7C15
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31

# Keeps the second of two integers, and makes the first zero.
_SECOND_OF_TWO = np.array([0, 2**64 - 1], np.uint64)


def as_seed(seed: int | tf.Tensor | None) -> Seed:
    """Make a stateless seed.

    :param seed: An integer, also as a scalar tensor; a stateless seed (which is returned as it
        is); or None for a fresh seed from TensorFlow's global generator (a new one at every call,
        also when compiled).
    :return: An integer tensor of shape [2].
    :raises ValueError: If ``seed`` is none of these.
    """
    if isinstance(seed, int | np.integer):
        seed = int(seed)
        return tf.constant([seed % 2**31, seed // 2**31 % 2**31], dtype=tf.int32)
    if seed is not None and tf.is_tensor(seed):
        fits = any(map(seed.shape.is_compatible_with, ([], [2])))
        if not (fits and seed.dtype.is_integer):
            raise ValueError(f"seed must be an integer, two of them or None, got {seed!r}.")
        if seed.shape.rank == 0:
            seed = tf.cast(seed, tf.int64)  # where 2**31 is a number
            return tf.cast(tf.stack([seed % 2**31, seed // 2**31 % 2**31]), tf.int32)
    elif seed is not None:
        numbers = np.asarray(seed)
        if numbers.dtype.kind not in "iu" or numbers.shape != (2,):
            raise ValueError(f"seed must be an integer, two of them or None, got {seed!r}.")
    return tfp.random.sanitize_seed(seed)


def as_generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Make a generator of NumPy's random numbers, which starting values are drawn from.

    :param seed: An integer that is not negative; a generator, which is returned as it is; or None
        for other numbers at every call.
    :raises ValueError: If ``seed`` is none of these.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"seed must be an integer of at least 0, a NumPy generator or None, got {seed!r}."
        ) from None


def random_order(num: int, seed: int | np.random.Generator, size: int = 1) -> npt.NDArray[np.int64]:
    """A random order of rows which changes in one place, and at its end, with one row more.

    The last row takes a random place, and what was there goes to the end. What is drawn for so many
    rows is thus nearly what is drawn for one more, and a generator is used as much.

    :param num: Rows.
    :param seed: An integer that is not negative, or a generator.
    :param size: How many come first that are a random choice of all: up to so many rows stay as
        they are.
    """
    own = np.random.default_rng(np.random.default_rng(seed).integers(2**32))
    order = list(range(num))
    places = (own.random(num) * np.arange(1, num + 1)).astype(int).tolist()
    for row in range(size, num):
        order[row], order[places[row]] = order[places[row]], row
    return np.array(order, np.int64)


def split_seed(seed: Seed, num: int) -> list[Seed]:
    """Split a stateless seed into ``num`` independent ones."""
    seed = tf.convert_to_tensor(seed)
    seeds = _integers([num, 2], seed, seed.dtype)
    return [tf.gather(seeds, index) for index in range(num)]


def fold_in(seed: Seed, number: int | tf.Tensor) -> Seed:
    """Make a stateless seed from one and an integer, such as the number of a step."""
    number = tf.convert_to_tensor(number)
    drawn = _integers([], seed, number.dtype)
    pair = tf.stack([tf.cast(drawn, tf.int64), tf.cast(number, tf.int64)])
    return tf.cast(pair, number.dtype)


def uniform(shape: tf.Tensor | Sequence[int], seed: Seed, dtype: tf.DType) -> tf.Tensor:
    """Draw numbers that are uniform on the open interval from 0 to 1, in float32 or float64."""
    return _uniform_from_bits(_integers(shape, seed, tf.uint64), dtype)


def normal(shape: tf.Tensor | Sequence[int], seed: Seed, dtype: tf.DType) -> tf.Tensor:
    """Draw standard normal numbers, in float32 or float64."""
    count = tf.reduce_prod(tf.cast(shape, tf.int32))  # an empty list is one of floating point
    pairs = _box_muller(*tf.unstack(uniform([2, (count + 1) // 2], seed, dtype)))
    return tf.reshape(tf.reshape(pairs, [-1])[:count], shape)


@check_shapes("points: [N, D]", "seed: [2]", "return: [S, N, width]")
def normal_at_points(points: tf.Tensor, seed: Seed, num_samples: int, width: int) -> tf.Tensor:
    """Standard normal numbers that are a function of the seed and of each point's coordinates.

    Equal points get equal noise, whatever the batch in which they come: so a draw of a random
    function, evaluated point by point, does not depend on how the points are split into batches.
    In float32 it is that of float64, rounded, where float64 holds the same points.
    Each point's coordinates and the seed are hashed into a key, which starts a SplitMix64 stream.

    :param points: Points, [N, D].
    :param seed: A stateless seed, [2].
    :param num_samples: Number of draws, S.
    :param width: How many numbers each draw has at each point.
    :return: Independent standard normal numbers, [S, N, width], of the dtype of ``points``.
    """
    keys = hash_rows(points, seed)
    num_pairs = (num_samples * width + 1) // 2
    places = tf.cast(tf.range(1, 2 * num_pairs + 1)[:, None], tf.uint64)
    stream = keys + _INCREMENT * places
    uniforms = tf.split(_uniform_from_bits(_mix(stream), points.dtype), 2)
    num_points = sizes(points)[0]  # -1 would not do where the width is 0
    numbers = tf.reshape(_box_muller(*uniforms), [2 * num_pairs, num_points])
    by_draw = tf.reshape(numbers[: num_samples * width], [num_samples, width, num_points])
    return tf.transpose(by_draw, [0, 2, 1])


def _integers(shape: tf.Tensor | Sequence[int], seed: Seed, dtype: tf.DType) -> tf.Tensor:
    """Integers that are uniform on all of their type: those of tf.random.stateless_uniform."""
    scrambled = _philox([2], _SCRAMBLING_KEY, tf.cast(seed, tf.uint64), tf.uint64)
    counter = tf.bitwise.bitwise_and(scrambled, _SECOND_OF_TWO)
    return _philox(shape, scrambled[:1], counter, dtype)


def _philox(
    shape: tf.Tensor | Sequence[int],
    key: tf.Tensor | npt.NDArray[np.uint64],
    counter: tf.Tensor,
    dtype: tf.DType,
) -> tf.Tensor:
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape, key=key, counter=counter, alg=tf.random.Algorithm.PHILOX.value, dtype=dtype
    )


def _box_muller(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Turn two uniform numbers into two normal ones (Box and Muller, 1958), on a new first axis."""
    radius, angle = tf.sqrt(-2.0 * tf.math.log(first)), (2.0 * np.pi) * second
    return tf.stack([radius * tf.cos(angle), radius * tf.sin(angle)])


def _uniform_from_bits(bits: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    # The bits of a number from 1 to 2 are an exponent and a uniform fraction: no conversion needed.
    digits = 23 if dtype == tf.float32 else 52
    fraction = tf.bitwise.right_shift(bits, tf.constant(64 - digits, tf.uint64))
    if dtype == tf.float32:
        fraction = tf.cast(fraction, tf.int32)
    one = np.ones([], tf.as_dtype(dtype).as_numpy_dtype).view(fraction.dtype.as_numpy_dtype)
    from_one = tf.bitcast(tf.bitwise.bitwise_or(fraction, one), dtype)
    return (from_one - 1.0) + 2.0 ** -(digits + 1)


def hash_rows(points: tf.Tensor, seed: Seed) -> tf.Tensor:
    """Hash a seed and each row of coordinates [N, D] into 64 bits, [N]."""
    # Also float32 is hashed in float64, so that a point's noise is the same in both. -0.0 is the
    # same point as 0.0. (Graph optimisers take the addition of zero away.)
    points = tf.cast(points, tf.float64)
    bits = tf.bitcast(tf.where(points == 0.0, tf.zeros_like(points), points), tf.uint64)
    columns = tf.cast(tf.range(1, sizes(points)[1] + 1), tf.uint64)
    seed = tf.cast(seed, tf.uint64)
    key = _mix(_mix(seed[0] + _INCREMENT) + seed[1])
    of_columns = tf.bitcast(_mix(_mix(bits) + _INCREMENT * columns), tf.int64)
    return _mix(tf.bitcast(tf.reduce_sum(of_columns, axis=1), tf.uint64) + key)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    for shift, multiplier in _MULTIPLIERS:
        bits = _xor_with_shifted(bits, shift) * multiplier
    return _xor_with_shifted(bits, _LAST_SHIFT)


def _xor_with_shifted(bits: tf.Tensor, shift: int) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint64)))


@dataclass(frozen=True)
class TargetNoise:
    """The random numbers of N targets under S draws, in one layer.

    :param seed: A stateless seed, [2].
    :param num_samples: Number of joint draws, S.
    :param num_targets: Number of targets, N.
    :param gradient_dtype: In which gradients of features may be computed; float32 to save time.
    :param keys: What the numbers are functions of besides the seed, [N, D]; [1, D] for numbers that
        all targets share. None for numbers that are independent even where two targets coincide,
        as joint draws need them.
    """

    seed: Seed
    num_samples: int | tf.Tensor
    num_targets: int | tf.Tensor
    gradient_dtype: tf.DType
    keys: tf.Tensor | None = None

    def normal(self, width: int | tf.Tensor) -> tf.Tensor:
        """Return standard normal numbers, [S, N, ``width``], the same at every call."""
        shape = [self.num_samples, self.num_targets, width]
        if self.keys is None:
            return normal(shape, self.seed, self.gradient_dtype)
        numbers = normal_at_points(self.keys, self.seed, self.num_samples, width)
        return tf.broadcast_to(numbers, shape) if self.keys.shape[0] == 1 else numbers

    def fold_in(self, number: int) -> TargetNoise:
        """Return other numbers of the same targets."""
        return replace(self, seed=fold_in(self.seed, number))


class ZeroNoise(TargetNoise):
    """Zeros in place of random numbers: what is drawn from them are means."""

    def normal(self, width: int | tf.Tensor) -> tf.Tensor:
        return tf.zeros([self.num_samples, self.num_targets, width], self.gradient_dtype)
