"""Factorised covariances, and what layers compute with them, each with its own gradient.

A covariance K is factorised once, K = L Lᵀ. L itself is a constant for differentiation: every
function below sends its gradient straight to K, in as few products as its formula has, instead of
through the factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.exceptions import CholeskyError

__all__ = [
    "Factorised",
    "cholesky",
    "conditional_moments",
    "factorise",
    "relative_jitter",
    "whiten",
]

_JITTER_GROWTH = 10.0
_MAX_ATTEMPTS = 5


class Factorised(NamedTuple):
    """A positive definite matrix with its Cholesky factor.

    :param matrix: K, [..., M, M], where gradients go.
    :param tril: L, [..., M, M], the factor of K plus its jitter; a constant for gradients.
    """

    matrix: tf.Tensor
    tril: tf.Tensor


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
    "return.matrix: [batch..., M, M]",
    "return.tril: [batch..., M, M]",
)
def factorise(matrix: tf.Tensor, jitter: tf.Tensor, *, name: str = "matrix") -> Factorised:
    """Factorise ``matrix + jitter I``.

    Where that fails, the jitter of that matrix alone grows tenfold, up to 10⁵ times.

    :param matrix: Symmetric positive (semi-)definite matrices, [..., M, M].
    :param jitter: What is added to the diagonal of each matrix, [...]; not differentiated.
    :param name: What the matrix is, for the error message.
    :return: The matrix and its factor. In a compiled function a matrix whose factorisation failed
        with every jitter has NaN throughout its lower triangle.
    :raises CholeskyError: If, in eager mode, the factorisation fails with every jitter.
    """
    tril = _escalating_cholesky(tf.stop_gradient(matrix), tf.stop_gradient(jitter))
    if tf.executing_eagerly() and not bool(tf.reduce_all(tf.math.is_finite(tril))):
        raise CholeskyError(
            f"The Cholesky decomposition of {name} failed, even with a jitter of "
            f"{_JITTER_GROWTH**_MAX_ATTEMPTS:g} times {float(tf.reduce_max(jitter)):.3g}. "
            "Check the data and the parameters for NaN, the kernel's lengthscales for extreme "
            "features, or lower the learning rate."
        )
    return Factorised(matrix, tf.stop_gradient(tril))


@check_shapes("factorised.tril: [batch..., M, M]", "return: [batch..., M, M]")
def cholesky(factorised: Factorised) -> tf.Tensor:
    r"""Return L, [..., M, M], as a function of K.

    With Φ taking the lower triangle and halving its diagonal,
    :math:`\bar K = L^{-T} \Phi(L^T \bar L) L^{-1}`, up to symmetrisation.
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, None]]]:
        def gradient(tril_bar: tf.Tensor) -> tuple[tf.Tensor, None]:
            inner = _half_lower(tf.matmul(tril, tril_bar, transpose_a=True))
            return _unwhiten_both_sides(tril, inner), None

        return tf.identity(tril), gradient

    return differentiable(*factorised)


@check_shapes(
    "factorised.tril: [broadcast batch..., M, M]",
    "columns: [broadcast batch..., M, P]",
    "return[0]: [batch..., M, P]",
)
def whiten(factorised: Factorised, columns: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Return X = L⁻¹ R, and log|K|.

    :math:`\bar R = L^{-T} \bar X` and, with Φ as for :func:`cholesky` and l the log-determinant,
    :math:`\bar K = L^{-T} (\bar l I - \Phi(\bar X X^T)) L^{-1}`.

    :param factorised: K, [..., M, M].
    :param columns: R, [..., M, P].
    :return: L⁻¹ R, [..., M, P], and log|K|, [...].
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor, columns: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tuple[tf.Tensor, None, tf.Tensor]]]:
        whitened = tf.linalg.triangular_solve(tril, columns)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tril)), axis=-1)

        def gradient(
            whitened_bar: tf.Tensor, log_det_bar: tf.Tensor
        ) -> tuple[tf.Tensor, None, tf.Tensor]:
            columns_bar = tf.linalg.triangular_solve(tril, whitened_bar, adjoint=True)
            outer = _sum_to(tf.matmul(whitened_bar, whitened, transpose_b=True), tril)
            identity = tf.eye(tf.shape(tril)[-1], dtype=tril.dtype)
            inner = log_det_bar[..., None, None] * identity - _half_lower(outer)
            return _unwhiten_both_sides(tril, inner), None, _sum_to(columns_bar, columns)

        return (whitened, log_det), gradient

    return differentiable(*factorised, columns)


@check_shapes(
    "factorised.tril: [batch, M, M]",
    "cross: [batch, M, N]",
    "features: [broadcast S, M, P]",
    "return[0]: [broadcast S, N, P]",
    "return[1]: [batch, N]",
)
def conditional_moments(
    factorised: Factorised, cross: tf.Tensor, features: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Mean at N targets given features at M points, and the variance that they explain.

    With k the column of ``cross`` that belongs to a target, these are :math:`k^T K^{-1} Y` and
    :math:`k^T K^{-1} k`. With A = K⁻¹ C for C = ``cross``, and U = K⁻¹ Y m̄ᵀ,

    .. math:: \bar Y = A \bar m, \quad \bar C = U + 2 A \operatorname{diag}(\bar e), \quad
              \bar K = -A (U + A \operatorname{diag}(\bar e))^T.

    :param factorised: K, [batch, M, M].
    :param cross: C, [batch, M, N].
    :param features: Y, [S, M, P]. Of ``batch`` and S, either may be 1.
    :return: Mean, [S, N, P] (or with the leading axis of K), and explained variance, [batch, N].
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor, cross: tf.Tensor, features: tf.Tensor
    ) -> tuple[
        tuple[tf.Tensor, tf.Tensor], Callable[..., tuple[tf.Tensor, None, tf.Tensor, tf.Tensor]]
    ]:
        shared = tril.shape[0] == 1
        # One K for all draws: draws become columns of one product.
        folded = _draws_to_columns(features) if shared else features
        num_draws = tf.shape(features)[0]
        whitened = tf.linalg.triangular_solve(tril, cross)
        whitened_features = tf.linalg.triangular_solve(tril, folded)
        explained = tf.reduce_sum(tf.square(whitened), axis=-2)
        mean = tf.matmul(whitened, whitened_features, transpose_a=True)

        def gradient(
            mean_bar: tf.Tensor, explained_bar: tf.Tensor
        ) -> tuple[tf.Tensor, None, tf.Tensor, tf.Tensor]:
            folded_bar = _draws_to_columns(mean_bar) if shared else mean_bar
            solution = tf.linalg.triangular_solve(tril, whitened, adjoint=True)
            weights = tf.linalg.triangular_solve(tril, whitened_features, adjoint=True)
            through_variance = solution * explained_bar[:, None, :]
            half = tf.matmul(weights, folded_bar, transpose_b=True) + through_variance
            features_bar = tf.matmul(solution, folded_bar)
            if shared:
                features_bar = _columns_to_draws(features_bar, num_draws)
            return (
                -tf.matmul(solution, half, transpose_b=True),
                None,
                half + through_variance,
                _sum_to(features_bar, features),
            )

        return (_columns_to_draws(mean, num_draws) if shared else mean, explained), gradient

    return differentiable(*factorised, cross, features)


def _draws_to_columns(draws: tf.Tensor) -> tf.Tensor:
    """[S, M, P] to [1, M, S P]."""
    shape = tf.shape(draws)
    return tf.reshape(tf.transpose(draws, [1, 0, 2]), [1, shape[1], shape[0] * shape[2]])


def _columns_to_draws(columns: tf.Tensor, num_draws: tf.Tensor) -> tf.Tensor:
    """[1, M, S P] to [S, M, P]."""
    shape = tf.shape(columns)
    width = shape[2] // num_draws
    return tf.transpose(tf.reshape(columns, [shape[1], num_draws, width]), [1, 0, 2])


def _half_lower(matrix: tf.Tensor) -> tf.Tensor:
    ones = tf.ones(tf.shape(matrix)[-2:], matrix.dtype)
    weights = tf.linalg.band_part(ones, -1, 0) - 0.5 * tf.linalg.band_part(ones, 0, 0)
    return matrix * weights


def _unwhiten_both_sides(tril: tf.Tensor, inner: tf.Tensor) -> tf.Tensor:
    """L⁻ᵀ X L⁻¹."""
    left = tf.linalg.triangular_solve(tril, inner, adjoint=True)
    transposed = tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(left), adjoint=True)
    return tf.linalg.matrix_transpose(transposed)


def _sum_to(gradient: tf.Tensor, primal: tf.Tensor) -> tf.Tensor:
    """Undo the broadcasting of leading axes."""
    if gradient.shape == primal.shape and primal.shape.is_fully_defined():
        return gradient
    target = tf.shape(primal)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=target, s1=tf.shape(gradient))
    return tf.reshape(tf.reduce_sum(gradient, axes), target)


def _escalating_cholesky(matrix: tf.Tensor, jitter: tf.Tensor) -> tf.Tensor:
    def factor(jitter: tf.Tensor) -> tf.Tensor:
        diagonal = tf.linalg.diag_part(matrix) + jitter[..., None]
        return tf.linalg.cholesky(tf.linalg.set_diag(matrix, diagonal))

    def failed(tril: tf.Tensor) -> tf.Tensor:
        # The last row of a factor depends on all that comes before it.
        return tf.logical_not(tf.reduce_all(tf.math.is_finite(tril), axis=[-2, -1]))

    def not_done(attempt: tf.Tensor, jitter: tf.Tensor, tril: tf.Tensor) -> tf.Tensor:
        return tf.logical_and(attempt < _MAX_ATTEMPTS, tf.reduce_any(failed(tril)))

    def escalate(
        attempt: tf.Tensor, jitter: tf.Tensor, tril: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        jitter = tf.where(failed(tril), _JITTER_GROWTH * jitter, jitter)
        return attempt + 1, jitter, factor(jitter)

    _, _, tril = tf.while_loop(not_done, escalate, (tf.constant(0), jitter, factor(jitter)))
    return tril
