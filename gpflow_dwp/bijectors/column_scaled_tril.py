"""Lower-triangular matrices whose columns have scales of their own."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_probability as tfp

__all__ = ["ColumnScaledTril"]


class ColumnScaledTril(tfp.bijectors.Bijector):
    r"""Maps a lower triangle X, [M, M], to L with L_jj = exp X_jj and L_ij = X_ij L_jj.

    A unit triangle times a positive diagonal: each column's scale is one coordinate, so that a
    step of one size changes it by one factor, whatever it is, and takes what is below along. Its
    inverse divides by the diagonal, which makes it one to one onto the lower triangles with a
    positive diagonal. The Jacobian matrix, column by column of L, is triangular with L_jj for each
    of the M - j + 1 entries of column j on its diagonal:

    .. math:: \log|\det \partial L / \partial X| = \sum_j (M - j + 1) X_{jj}.

    :param name: Name of the operations.
    """

    def __init__(self, name: str = "column_scaled_tril") -> None:
        super().__init__(forward_min_event_ndims=2, name=name, parameters={"name": name})

    @classmethod
    def _parameter_properties(cls, dtype: tf.DType) -> dict[str, object]:
        return {}

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        diagonal = tf.linalg.diag_part(x)
        return tf.linalg.set_diag(x, tf.ones_like(diagonal)) * tf.exp(diagonal)[..., None, :]

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        diagonal = tf.linalg.diag_part(y)
        return tf.linalg.set_diag(y / diagonal[..., None, :], tf.math.log(diagonal))

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        size = tf.shape(x)[-1]
        entries = tf.cast(tf.range(size, 0, -1), x.dtype)
        return tf.reduce_sum(entries * tf.linalg.diag_part(x), axis=-1)
