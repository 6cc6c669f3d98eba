"""What the statistics of several distributions have in common."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

__all__ = ["isserlis", "matrix_of_covariances", "where_defined"]


def where_defined(
    value: tf.Tensor, defined: tf.Tensor, *, allow_nan: bool, message: str
) -> tf.Tensor:
    """Put NaN where a statistic is not defined, or make that an error.

    :param value: The statistic, or what it is made of.
    :param defined: Where it is defined; broadcasts with ``value``.
    :param allow_nan: Whether NaN is allowed.
    :param message: What the error says.
    """
    assertions = []
    if not allow_nan:
        assertions = [tf.debugging.assert_equal(tf.reduce_all(defined), True, message=message)]
    with tf.control_dependencies(assertions):
        return tf.where(defined, value, tf.constant(np.nan, value.dtype))


def isserlis(scale: tf.Tensor) -> tf.Tensor:
    """Return S_ik S_jl + S_il S_jk for all i, j, k, l, [..., M, M, M, M].

    For a column f ~ N(0, S) it is the covariance of f_i f_j and f_k f_l (Isserlis, 1918).

    :param scale: Covariance, S, [..., M, M].
    """
    first = scale[..., :, None, :, None] * scale[..., None, :, None, :]
    return first + tf.linalg.matrix_transpose(first)


def matrix_of_covariances(covariances: tf.Tensor) -> tf.Tensor:
    """Turn the covariances of the entries of a matrix into TFP's form of them.

    :param covariances: Those of G_ij and G_kl, [..., M, M, M, M].
    :return: Those of the entries in row-major order, [..., M², M²].
    """
    shape = tf.shape(covariances)
    entries = covariances.shape[-1] ** 2
    return tf.reshape(covariances, tf.concat([shape[:-4], [entries, entries]], axis=0))
