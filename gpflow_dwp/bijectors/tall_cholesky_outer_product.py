"""Outer product of a lower trapezoid with itself; its inverse is a Cholesky factor of rank R."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.validation import check_integers

__all__ = ["TallCholeskyOuterProduct"]


class TallCholeskyOuterProduct(tfp.bijectors.Bijector):
    r"""Outer product of a lower trapezoid with itself: C = Λ Λᵀ.

    Λ is lower trapezoidal with a positive diagonal, [..., M, R] with M ≥ R. C, [..., M, M], is
    symmetric, positive semi-definite and of rank R, with a positive definite leading R x R block.
    Such a C is a function of its entries C_ij with j ≤ min(i, R), as many as Λ has:

    .. math:: \Lambda_{:R} = \mathrm{chol}(C_{:R,:R}), \quad
              \Lambda_{R:} = C_{R:,:R} \Lambda_{:R}^{-T}.

    The Cholesky factor with a positive diagonal is unique, so the map is one to one. With the
    entries in row-major order, :math:`C_{ij} = \sum_{k \le j} \Lambda_{ik} \Lambda_{jk}` for
    j ≤ min(i, R) depends on no entry of Λ after Λ_ij. So the Jacobian is triangular, with diagonal
    entries Λ_jj for i > j and 2 Λ_jj for i = j. In column j there are M - j + 1 of them:

    .. math:: \log\left|\frac{\partial C}{\partial\Lambda}\right|
              = \sum_{j=1}^R [\log 2 + (M - j + 1) \log \Lambda_{jj}].

    This is equation (40) of "An Improved Variational Approximate Posterior for the Deep Wishart
    Process". Entries above the diagonal of Λ are ignored, and the inverse reads only the entries of
    C named above: where C is not positive semi-definite of rank R, the inverse is NaN or wrong.
    Any floating-point dtype.

    :param rank: Rank, R, which the inverse cannot see in the shape of C.
    :param name: Name of the operations.
    :raises ValueError: If ``rank`` is not an integer of at least 1.
    """

    def __init__(self, rank: int, *, name: str = "tall_cholesky_outer_product") -> None:
        parameters = dict(locals())
        check_integers(rank=rank)
        self._rank = int(rank)
        super().__init__(forward_min_event_ndims=2, parameters=parameters, name=name)

    @property
    def rank(self) -> int:
        """The number R of columns of Λ."""
        return self._rank

    @classmethod
    def _parameter_properties(cls, dtype: Any) -> dict[str, Any]:
        return {}

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        self._num_rows(x)
        factor = tf.linalg.band_part(x, -1, 0)
        product = tf.matmul(factor, factor, transpose_b=True)
        # Rounding may differ between the two triangles of a product.
        return 0.5 * (product + tf.linalg.matrix_transpose(product))

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        size, _ = checks.matrix_shape("The input", y, square=True)
        rank = self._rank
        if rank > size:
            raise ValueError(f"rank must be at most M = {size}, got {rank}.")
        top = tf.linalg.cholesky(y[..., :rank, :rank])
        rest = tf.linalg.triangular_solve(top, tf.linalg.matrix_transpose(y[..., rank:, :rank]))
        return tf.concat([top, tf.linalg.matrix_transpose(rest)], axis=-2)

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        exponents = tf.constant(self._num_rows(x) - np.arange(self._rank), x.dtype)
        log_diagonal = tf.math.log(tf.linalg.diag_part(x))
        return tf.reduce_sum(math.log(2.0) + exponents * log_diagonal, axis=-1)

    def _forward_event_shape(self, input_shape: tf.TensorShape) -> tf.TensorShape:
        return input_shape[:-1].concatenate(input_shape[-2:-1])

    def _forward_event_shape_tensor(self, input_shape: tf.Tensor) -> tf.Tensor:
        return tf.concat([input_shape[:-1], input_shape[-2:-1]], axis=0)

    def _inverse_event_shape(self, output_shape: tf.TensorShape) -> tf.TensorShape:
        return output_shape[:-1].concatenate([self._rank])

    def _inverse_event_shape_tensor(self, output_shape: tf.Tensor) -> tf.Tensor:
        return tf.concat([output_shape[:-1], [self._rank]], axis=0)

    def _num_rows(self, x: tf.Tensor) -> int:
        rows, columns = checks.matrix_shape("The input", x)
        if rows < columns or columns != self._rank:
            raise ValueError(
                f"The input must have shape [..., M, R] with M >= R and R = rank = {self._rank}, "
                f"got shape {x.shape}."
            )
        return rows
