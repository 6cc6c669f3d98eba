"""Covariances between points, by any GPflow kernel."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import IsotropicStationary, Kernel

__all__ = ["cross_covariance"]

# What a user's kernel may have in another way.
_FORMULA = ("__call__", "K", "scaled_squared_euclid_dist")


@check_shapes("points: [M, D]", "targets: [N, D]", "return: [M, N]")
def cross_covariance(kernel: Kernel, points: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Return ``kernel(points, targets)``.

    Where the number of targets is not known at tracing, GPflow's distances and their gradients put
    shapes together on a GPU, and the host waits for each. Here they do not.

    :param kernel: Any GPflow kernel.
    :param points: One set of points, [M, D].
    :param targets: Another one, [N, D].
    """
    if not isinstance(kernel, IsotropicStationary) or any(
        getattr(type(kernel), name) is not getattr(IsotropicStationary, name) for name in _FORMULA
    ):
        return kernel(points, targets)
    rows, columns = map(kernel.scale, kernel.slice(points, targets))
    distance = -2.0 * tf.matmul(rows, columns, transpose_b=True)
    distance += _square_norms(rows) + tf.transpose(_square_norms(columns))
    return kernel.K_r2(distance)


def _square_norms(rows: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.square(rows), axis=-1, keepdims=True)
