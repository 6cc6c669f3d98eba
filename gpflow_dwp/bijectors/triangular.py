"""Bijectors of triangles: of their columns' scales, and their products with another."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks

__all__ = ["ColumnScaledTril", "RightTriangularProduct"]


class RightTriangularProduct(tfp.bijectors.Bijector):
    r"""Right product of a lower trapezoid by a lower-triangular matrix: Λ = T B.

    T is lower trapezoidal, [..., M, R] with M ≥ R; B is lower triangular with a positive diagonal,
    [..., R, R]. The product is lower trapezoidal, and the sign of each diagonal entry is kept.

    Row i of Λ is :math:`\Lambda_{i,:r} = T_{i,:r} B_{:r,:r}` with r = min(i, R), a function of row
    i of T alone. So the Jacobian is block diagonal, and its blocks :math:`B_{:r,:r}^T` are
    triangular. B_jj stands in the blocks of the rows i ≥ j, which are M - j + 1:

    .. math:: \log\left|\frac{\partial\Lambda}{\partial T}\right|
              = \sum_{j=1}^R (M - j + 1) \log B_{jj}.

    This is equation (43) of "An Improved Variational Approximate Posterior for the Deep Wishart
    Process". Entries above the diagonals of T, Λ and B are ignored. The dtype is that of
    ``column_mixing_tril``.

    :param column_mixing_tril: What multiplies the factor from the right, B, [..., R, R].
    :raises ValueError: If ``column_mixing_tril`` is not square, or is known to lack a positive
        diagonal or to have an entry that is not finite.
    """

    def __init__(self, column_mixing_tril: Any, *, name: str = "right_triangular_product") -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            (tril,) = checks.convert_parameters(column_mixing_tril=column_mixing_tril)
            self._rank, _ = checks.matrix_shape("column_mixing_tril", tril, square=True)
            checks.check_tril("column_mixing_tril", tril)
            self.column_mixing_tril = tril
            super().__init__(
                forward_min_event_ndims=2,
                is_constant_jacobian=True,
                dtype=tril.dtype,
                parameters=parameters,
                name=name,
            )

    @classmethod
    def _parameter_properties(cls, dtype: Any) -> dict[str, Any]:
        return {"column_mixing_tril": tfp.util.ParameterProperties(event_ndims=2)}

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        self._num_rows(x)
        return tf.matmul(tf.linalg.band_part(x, -1, 0), self._triangle())

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        self._num_rows(y)
        # T B = Λ is Bᵀ Tᵀ = Λᵀ.
        transposed = tf.linalg.matrix_transpose(tf.linalg.band_part(y, -1, 0))
        solution = tf.linalg.triangular_solve(self._triangle(), transposed, adjoint=True)
        return tf.linalg.band_part(tf.linalg.matrix_transpose(solution), -1, 0)

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        exponents = self._num_rows(x) - np.arange(self._rank)
        log_diagonal = tf.math.log(tf.linalg.diag_part(self._triangle()))
        return tf.reduce_sum(tf.constant(exponents, log_diagonal.dtype) * log_diagonal, axis=-1)

    def _triangle(self) -> tf.Tensor:
        return tf.linalg.band_part(tf.convert_to_tensor(self.column_mixing_tril), -1, 0)

    def _num_rows(self, x: tf.Tensor) -> int:
        rows, columns = checks.matrix_shape("The input", x)
        if columns != self._rank or rows < columns:
            raise ValueError(
                f"The input must have shape [..., M, R] with M >= R and R = {self._rank}, that of "
                f"column_mixing_tril, got shape {x.shape}."
            )
        return rows


class ColumnScaledTril(tfp.bijectors.Bijector):
    r"""Maps a lower triangle X, [M, M], to L with L_jj = exp X_jj and L_ij = X_ij L_jj.

    A unit triangle times a positive diagonal: each column's scale is one coordinate, so that a
    step of one size changes it by one factor, whatever it is, and takes what is below along. Its
    inverse divides by the diagonal, which makes it one to one onto the lower triangles with a
    positive diagonal. The Jacobian matrix, column by column of L, is triangular with L_jj for each
    of the M - j + 1 entries of column j on its diagonal:

    .. math:: \log|\det \partial L / \partial X| = \sum_j (M - j + 1) X_{jj}.
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
