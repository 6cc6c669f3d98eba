"""Congruence of a matrix of rank R by an invertible matrix, general or triangular."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks

__all__ = ["SingularCongruence", "TriangularCongruence"]


class SingularCongruence(tfp.bijectors.Bijector):
    r"""Congruence by an invertible matrix: G = A C Aᵀ.

    C and G, [..., M, M], are symmetric, positive semi-definite and of rank R = min(ν, M), with a
    positive definite leading R x R block; A, [..., M, M], is invertible. Both are described by
    their entries in row i and column j ≤ min(i, R).

    The Jacobian follows from that of the singular Wishart. C ~ W(I, ν) gives G ~ W(A Aᵀ, ν), and
    the density of W(S, ν) is proportional to
    :math:`|S|^{-\nu/2} |G_{:R,:R}|^{(\nu-M-1)/2} \exp(-\tfrac12 \mathrm{tr}(S^{-1} G))`. The traces
    are equal, so what remains of the ratio of the densities of C and G is

    .. math:: \log\left|\frac{\partial G}{\partial C}\right| = \nu \log|\det A|
              + \tfrac12 (\nu - M - 1) (\log|C_{:R,:R}| - \log|G_{:R,:R}|),

    equation (44) of "An Improved Variational Approximate Posterior for the Deep Wishart Process".
    For ν ≥ M the minors are the determinants of C and G: they drop out, and with them any
    dependence on C, and (M + 1) log|det A| is left.

    Forward and inverse are exactly symmetric. The dtype is that of ``row_mixing``.

    :param row_mixing: What multiplies the factor from the left, A, [..., M, M].
    :param df: Degrees of freedom, ν. It gives R, and nothing depends on it if ν ≥ M.
    :param name: Name of the operations.
    :raises ValueError: If ``row_mixing`` is not square, or is known to be singular or to have an
        entry that is not finite, or if ``df`` is no integer of at least 1 and not above M - 1.
    """

    def __init__(self, row_mixing: Any, df: float, *, name: str = "singular_congruence") -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            (self._row_mixing,) = checks.convert_parameters(row_mixing=row_mixing)
            self._size, _ = checks.matrix_shape("row_mixing", self._row_mixing, square=True)
            self._df = checks.check_df(df, self._size)
            self._rank = min(math.ceil(self._df), self._size)
            self._check_row_mixing()
            super().__init__(
                forward_min_event_ndims=2,
                is_constant_jacobian=self._has_constant_jacobian(),
                dtype=self._row_mixing.dtype,
                parameters=parameters,
                name=name,
            )

    @property
    def row_mixing(self) -> Any:
        """The matrix A, [..., M, M]."""
        return self._row_mixing

    @property
    def df(self) -> float:
        """The degrees of freedom ν."""
        return self._df

    def constant_log_det(self) -> tf.Tensor:
        """Compute the forward log-determinant where it is the same for every C, [...]."""
        return (self._size + 1) * self.log_abs_determinant()

    def log_abs_determinant(self) -> tf.Tensor:
        """Compute ``log|det A|``, [...]."""
        return _log_abs_determinant(self._matrix())

    @classmethod
    def _parameter_properties(cls, dtype: Any) -> dict[str, Any]:
        return {"row_mixing": tfp.util.ParameterProperties(event_ndims=2)}

    def _check_row_mixing(self) -> None:
        expected = "finite entries and an inverse"
        checks.check_values("row_mixing", self._row_mixing, checks.invertible, expected)

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        self._check_input(x)
        matrix = self._matrix()
        return _symmetric(tf.matmul(matrix, tf.matmul(x, matrix, transpose_b=True)))

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        self._check_input(y)
        # The inverse, unlike a solution, is shared by all matrices that one A acts on.
        inverse = tf.linalg.inv(self._matrix())
        return _symmetric(tf.matmul(inverse, tf.matmul(y, inverse, transpose_b=True)))

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        self._check_input(x)
        if self.is_constant_jacobian:
            return self.constant_log_det()
        return self._log_det(self._log_det_minor(x), self._log_det_minor(self._forward(x)))

    def _inverse_log_det_jacobian(self, y: tf.Tensor) -> tf.Tensor:
        self._check_input(y)
        if self.is_constant_jacobian:
            return -self.constant_log_det()
        return -self._log_det(self._log_det_minor(self._inverse(y)), self._log_det_minor(y))

    def _log_det(self, log_det_c: tf.Tensor, log_det_g: tf.Tensor) -> tf.Tensor:
        log_det_a = self.log_abs_determinant()
        exponent = 0.5 * (self._df - self._size - 1)
        return self._df * log_det_a + exponent * (log_det_c - log_det_g)

    def _log_det_minor(self, matrix: tf.Tensor) -> tf.Tensor:
        factor = tf.linalg.cholesky(matrix[..., : self._rank, : self._rank])
        return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)), axis=-1)

    def _matrix(self) -> tf.Tensor:
        return tf.convert_to_tensor(self._row_mixing)

    def _has_constant_jacobian(self) -> bool:
        return self._rank == self._size

    def _check_input(self, x: tf.Tensor) -> None:
        checks.check_event("The input", x, [self._size, self._size], "that of row_mixing")


class TriangularCongruence(SingularCongruence):
    r"""Congruence by a lower-triangular matrix A, without determinants or inverses of general ones.

    The ratio of the minors of C and G is that of the leading block of A squared, so that the
    forward log-determinant does not depend on C, whatever ν and M are: it is

    .. math:: \nu \sum_{j \le M} \log|A_{jj}| - (\nu - M - 1) \sum_{j \le R} \log|A_{jj}|.

    Arguments are those of :class:`SingularCongruence`. What is above the diagonal of A is ignored.
    """

    def constant_log_det(self) -> tf.Tensor:
        log_diagonal = self._log_diagonal()
        log_minor = tf.reduce_sum(log_diagonal[..., : self._rank], axis=-1)
        rest = tf.reduce_sum(log_diagonal[..., self._rank :], axis=-1)
        return self._df * rest + (self._size + 1) * log_minor

    def log_abs_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(self._log_diagonal(), axis=-1)

    def _check_row_mixing(self) -> None:
        def condition(x: npt.NDArray[Any]) -> Any:
            return np.isfinite(np.tril(x)) & ((x != 0.0) | ~np.eye(self._size, dtype=bool))

        expected = "finite entries and no zero on its diagonal"
        checks.check_values("row_mixing", self._row_mixing, condition, expected)

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        self._check_input(y)
        matrix = self._matrix()
        half = tf.linalg.matrix_transpose(tf.linalg.triangular_solve(matrix, y))
        return _symmetric(tf.linalg.triangular_solve(matrix, half))

    def _matrix(self) -> tf.Tensor:
        return tf.linalg.band_part(tf.convert_to_tensor(self._row_mixing), -1, 0)

    def _has_constant_jacobian(self) -> bool:
        return True

    def _log_diagonal(self) -> tf.Tensor:
        return tf.math.log(tf.abs(tf.linalg.diag_part(self._matrix())))


def _log_abs_determinant(matrix: tf.Tensor) -> tf.Tensor:
    # As a sum, by the triangle of A = Q R. XLA has no determinants on the CPU.
    triangle = tf.linalg.qr(matrix).r
    return tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.diag_part(triangle))), axis=-1)


def _symmetric(matrix: tf.Tensor) -> tf.Tensor:
    return 0.5 * (matrix + tf.linalg.matrix_transpose(matrix))
