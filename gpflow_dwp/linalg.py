"""Factorisations that every layer shares: a Cholesky factor with its inverse, and its jitter."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.exceptions import CholeskyError

__all__ = ["cholesky_with_inverse", "relative_jitter"]

_JITTER_GROWTH = 10.0
_MAX_ATTEMPTS = 5


@check_shapes("matrix: [batch..., M, M]", "return: [batch...]")
def relative_jitter(matrix: tf.Tensor, jitter: float) -> tf.Tensor:
    """Turn a relative jitter into what is added to the diagonal of ``matrix``.

    :param matrix: Covariance matrices, [..., M, M].
    :param jitter: Jitter as a fraction of the mean of the diagonal (for a stationary kernel: of
        its variance).
    :return: The absolute jitter of each matrix, [...]. No gradient flows through it.
    """
    mean_variance = tf.reduce_mean(tf.linalg.diag_part(matrix), axis=-1)
    return tf.stop_gradient(jitter * mean_variance)


@check_shapes(
    "matrix: [batch..., M, M]",
    "jitter: [batch...]",
    "return[0]: [batch..., M, M]",
    "return[1]: [batch..., M, M]",
)
def cholesky_with_inverse(
    matrix: tf.Tensor, jitter: tf.Tensor, *, name: str = "matrix"
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Lower Cholesky factor L of ``matrix + jitter I``, and L⁻¹.

    Where a factorisation fails, the jitter of that matrix alone grows tenfold, up to 10⁵ times.
    Products with the explicit inverse replace triangular solves in what follows, and both
    directions of differentiation share it: with Φ taking the lower triangle and halving the
    diagonal,

    .. math:: \bar A = \tfrac12 L^{-T} (P + P^T) L^{-1}, \quad
              P = \Phi(L^T \bar L - \overline{L^{-1}} L^{-T}).

    :param matrix: Symmetric positive (semi-)definite matrices, [..., M, M].
    :param jitter: What is added to the diagonal of each matrix, [...]; not differentiated.
    :param name: What the matrix is, for the error message.
    :return: L and L⁻¹, [..., M, M] each. In a compiled function a matrix whose factorisation
        failed with every jitter has NaN throughout both lower triangles.
    :raises CholeskyError: If, in eager mode, the factorisation fails with every jitter.
    """
    factor, inverse = _cholesky_with_inverse(matrix, jitter)
    if tf.executing_eagerly() and not bool(tf.reduce_all(tf.math.is_finite(factor))):
        raise CholeskyError(
            f"The Cholesky decomposition of {name} failed, even with a jitter of "
            f"{_JITTER_GROWTH**_MAX_ATTEMPTS:g} times {float(tf.reduce_max(jitter)):.3g}. "
            "Check the data and the parameters for NaN, the kernel's lengthscales for extreme "
            "values, or lower the learning rate."
        )
    return factor, inverse


@tf.custom_gradient
def _cholesky_with_inverse(
    matrix: tf.Tensor, jitter: tf.Tensor
) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tuple[tf.Tensor, None]]]:
    factor = _escalating_cholesky(matrix, jitter)
    identity = tf.eye(tf.shape(matrix)[-1], dtype=matrix.dtype)
    inverse = tf.linalg.triangular_solve(factor, tf.broadcast_to(identity, tf.shape(factor)))

    def gradient(factor_bar: tf.Tensor, inverse_bar: tf.Tensor) -> tuple[tf.Tensor, None]:
        inner = tf.matmul(factor, factor_bar, transpose_a=True) - tf.matmul(
            inverse_bar, inverse, transpose_b=True
        )
        lower = tf.linalg.band_part(inner, -1, 0)
        lower = tf.linalg.set_diag(lower, 0.5 * tf.linalg.diag_part(lower))
        symmetric = 0.5 * (lower + tf.linalg.matrix_transpose(lower))
        return tf.matmul(inverse, tf.matmul(symmetric, inverse), transpose_a=True), None

    return (factor, inverse), gradient


def _escalating_cholesky(matrix: tf.Tensor, jitter: tf.Tensor) -> tf.Tensor:
    def factorise(jitter: tf.Tensor) -> tf.Tensor:
        diagonal = tf.linalg.diag_part(matrix) + jitter[..., None]
        return tf.linalg.cholesky(tf.linalg.set_diag(matrix, diagonal))

    def failed(factor: tf.Tensor) -> tf.Tensor:
        # The last row of a factor depends on all that comes before it.
        return tf.logical_not(tf.reduce_all(tf.math.is_finite(factor), axis=[-2, -1]))

    def not_done(attempt: tf.Tensor, jitter: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
        return tf.logical_and(attempt < _MAX_ATTEMPTS, tf.reduce_any(failed(factor)))

    def escalate(
        attempt: tf.Tensor, jitter: tf.Tensor, factor: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        jitter = tf.where(failed(factor), _JITTER_GROWTH * jitter, jitter)
        return attempt + 1, jitter, factorise(jitter)

    _, _, factor = tf.while_loop(not_done, escalate, (tf.constant(0), jitter, factorise(jitter)))
    return factor
