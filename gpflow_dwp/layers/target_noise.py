"""The random numbers of targets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import tensorflow as tf

from gpflow_dwp.base import Seed
from gpflow_dwp.random import fold_in, normal, normal_at_points

__all__ = ["TargetNoise", "ZeroNoise"]


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
