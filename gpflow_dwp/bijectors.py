"""Bijectors between the factors and matrices of the generalised (singular) Wisharts.

Their log-determinants count the entries that describe a matrix, j ≤ min(i, R), each once; those of
TFP's element-wise bijectors count all M² entries of an [M, M] matrix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.validation import check_integers

__all__ = [
    "ColumnScaledTril",
    "RightTriangularProduct",
    "SingularCongruence",
    "TallCholeskyOuterProduct",
    "TriangularCongruence",
]


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
    :raises ValueError: If ``rank`` is not an integer of at least 1.
    """

    def __init__(self, rank: int, *, name: str = "tall_cholesky_outer_product") -> None:
        parameters = dict(locals())
        check_integers(rank=rank)
        self.rank = int(rank)
        super().__init__(forward_min_event_ndims=2, parameters=parameters, name=name)

    @classmethod
    def _parameter_properties(cls, dtype: Any) -> dict[str, Any]:
        return {}

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        self._num_rows(x)
        factor = tf.linalg.band_part(x, -1, 0)
        return _symmetric(tf.matmul(factor, factor, transpose_b=True))

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        size, _ = checks.matrix_shape("The input", y, square=True)
        rank = self.rank
        if rank > size:
            raise ValueError(f"rank must be at most M = {size}, got {rank}.")
        top = tf.linalg.cholesky(y[..., :rank, :rank])
        rest = tf.linalg.triangular_solve(top, tf.linalg.matrix_transpose(y[..., rank:, :rank]))
        return tf.concat([top, tf.linalg.matrix_transpose(rest)], axis=-2)

    def _forward_log_det_jacobian(self, x: tf.Tensor) -> tf.Tensor:
        exponents = tf.constant(self._num_rows(x) - np.arange(self.rank), x.dtype)
        log_diagonal = tf.math.log(tf.linalg.diag_part(x))
        return tf.reduce_sum(math.log(2.0) + exponents * log_diagonal, axis=-1)

    def _forward_event_shape(self, input_shape: tf.TensorShape) -> tf.TensorShape:
        return input_shape[:-1].concatenate(input_shape[-2:-1])

    def _forward_event_shape_tensor(self, input_shape: tf.Tensor) -> tf.Tensor:
        return tf.concat([input_shape[:-1], input_shape[-2:-1]], axis=0)

    def _inverse_event_shape(self, output_shape: tf.TensorShape) -> tf.TensorShape:
        return output_shape[:-1].concatenate([self.rank])

    def _inverse_event_shape_tensor(self, output_shape: tf.Tensor) -> tf.Tensor:
        return tf.concat([output_shape[:-1], [self.rank]], axis=0)

    def _num_rows(self, x: tf.Tensor) -> int:
        return _num_rows(x, self.rank, f"rank = {self.rank}")


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
    :raises ValueError: If ``row_mixing`` is not square, or is known to be singular or to have an
        entry that is not finite, or if ``df`` is no integer of at least 1 and not above M - 1.
    """

    def __init__(self, row_mixing: Any, df: float, *, name: str = "singular_congruence") -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            (self.row_mixing,) = checks.convert_parameters(row_mixing=row_mixing)
            self._size, _ = checks.matrix_shape("row_mixing", self.row_mixing, square=True)
            self.df = checks.check_df(df, self._size)
            self._rank = min(math.ceil(self.df), self._size)
            self._check_row_mixing()
            super().__init__(
                forward_min_event_ndims=2,
                is_constant_jacobian=self._has_constant_jacobian(),
                dtype=self.row_mixing.dtype,
                parameters=parameters,
                name=name,
            )

    def constant_log_det(self) -> tf.Tensor:
        """Compute the forward log-determinant where it is the same for every C, [...]."""
        return (self._size + 1) * self.log_abs_determinant()

    def log_abs_determinant(self) -> tf.Tensor:
        """Compute ``log|det A|``, [...]."""
        # As a sum, by the triangle of A = Q R. XLA has no determinants on the CPU.
        triangle = tf.linalg.qr(self._matrix()).r
        return tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.diag_part(triangle))), axis=-1)

    @classmethod
    def _parameter_properties(cls, dtype: Any) -> dict[str, Any]:
        return {"row_mixing": tfp.util.ParameterProperties(event_ndims=2)}

    def _check_row_mixing(self) -> None:
        expected = "finite entries and an inverse"
        checks.check_values("row_mixing", self.row_mixing, checks.invertible, expected)

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
        exponent = 0.5 * (self.df - self._size - 1)
        return self.df * log_det_a + exponent * (log_det_c - log_det_g)

    def _log_det_minor(self, matrix: tf.Tensor) -> tf.Tensor:
        factor = tf.linalg.cholesky(matrix[..., : self._rank, : self._rank])
        return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)), axis=-1)

    def _matrix(self) -> tf.Tensor:
        return tf.convert_to_tensor(self.row_mixing)

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
        return self.df * rest + (self._size + 1) * log_minor

    def log_abs_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(self._log_diagonal(), axis=-1)

    def _check_row_mixing(self) -> None:
        def condition(x: npt.NDArray[Any]) -> Any:
            return np.isfinite(np.tril(x)) & ((x != 0.0) | ~np.eye(self._size, dtype=bool))

        expected = "finite entries and no zero on its diagonal"
        checks.check_values("row_mixing", self.row_mixing, condition, expected)

    def _inverse(self, y: tf.Tensor) -> tf.Tensor:
        self._check_input(y)
        matrix = self._matrix()
        half = tf.linalg.matrix_transpose(tf.linalg.triangular_solve(matrix, y))
        return _symmetric(tf.linalg.triangular_solve(matrix, half))

    def _matrix(self) -> tf.Tensor:
        return tf.linalg.band_part(tf.convert_to_tensor(self.row_mixing), -1, 0)

    def _has_constant_jacobian(self) -> bool:
        return True

    def _log_diagonal(self) -> tf.Tensor:
        return tf.math.log(tf.abs(tf.linalg.diag_part(self._matrix())))


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
        return _num_rows(x, self._rank, f"{self._rank}, that of column_mixing_tril")


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


def _num_rows(x: tf.Tensor, rank: int, what: str) -> int:
    """M of a trapezoid, [..., M, R]."""
    rows, columns = checks.matrix_shape("The input", x)
    if rows < columns or columns != rank:
        raise ValueError(
            f"The input must have shape [..., M, R] with M >= R and R = {what}, "
            f"got shape {x.shape}."
        )
    return rows


def _symmetric(matrix: tf.Tensor) -> tf.Tensor:
    # Rounding may differ between the two triangles of a product.
    return 0.5 * (matrix + tf.linalg.matrix_transpose(matrix))
