"""Kernels that do not look at their inputs. ``Bias`` is GPflow's alias of ``Constant``."""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import Constant, White

from gpflow_dwp.kernels._dispatch import Coinciding, Entries, gram_kernel

__all__ = ["constant", "white"]


@gram_kernel.register(Constant, Entries)
def constant(kernel: Constant, entries: Entries) -> tf.Tensor:
    """σ², left to broadcast."""
    return tf.convert_to_tensor(kernel.variance)


@gram_kernel.register(White, Entries)
def white(kernel: White, entries: Entries) -> tf.Tensor:
    """σ² where a point meets itself, and only there: equal but different points share no noise."""
    variance = tf.convert_to_tensor(kernel.variance)
    if entries.coinciding is Coinciding.NONE:
        return tf.zeros_like(variance)
    if entries.coinciding is Coinciding.ALL:
        return variance
    return tf.linalg.diag(tf.fill([tf.shape(entries.product)[-1]], variance))
