"""Moments of Gaussians given others, with as few passes over targets as their gradients need."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.linalg._gradients import sum_to
from gpflow_dwp.linalg.factorisation import Factorised, factorise

__all__ = ["conditional_moments", "outer_product", "quadratic_forms", "regularised_inverse"]


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
    :math:`k^T K^{-1} k`. With A = K⁻¹ C for C = ``cross``, W = K⁻¹ Y and
    D = 2 A diag(ē),

    .. math:: \bar Y = A \bar m, \quad \bar C = W \bar m^T + D, \quad
              \bar K = -\bar Y W^T - \tfrac12 D A^T.

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
        # Long rows make for faster products than long columns, by a factor of two.
        mean = tf.linalg.matrix_transpose(tf.matmul(whitened_features, whitened, transpose_a=True))

        def gradient(
            mean_bar: tf.Tensor, explained_bar: tf.Tensor
        ) -> tuple[tf.Tensor, None, tf.Tensor, tf.Tensor]:
            folded_bar = _draws_to_columns(mean_bar) if shared else mean_bar
            solution = tf.linalg.triangular_solve(tril, whitened, adjoint=True)
            weights = tf.linalg.triangular_solve(tril, whitened_features, adjoint=True)
            through_variance = solution * (2.0 * explained_bar[:, None, :])
            features_bar = tf.matmul(solution, folded_bar)
            matrix_bar = tf.matmul(features_bar, weights, transpose_b=True)
            matrix_bar += 0.5 * tf.matmul(through_variance, solution, transpose_b=True)
            if shared:
                features_bar = _columns_to_draws(features_bar, num_draws)
            return (
                -matrix_bar,
                None,
                tf.matmul(weights, folded_bar, transpose_b=True) + through_variance,
                sum_to(features_bar, features),
            )

        return (_columns_to_draws(mean, num_draws) if shared else mean, explained), gradient

    return differentiable(*factorised, cross, features)


@check_shapes(
    "covariance: [batch, M, M]",
    "precision_tril: [M, M]",
    "return[0]: [batch, M, M]",
    "return[1]: [batch]",
)
def regularised_inverse(
    covariance: tf.Tensor, precision_tril: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Return Φ = (K + Λ⁻¹)⁻¹ and log|I + K Λ| for Λ = L Lᵀ, factorising neither K nor Λ.

    With B = I + Lᵀ K L, whose eigenvalues are at least 1, and P = L B⁻¹, Φ = P Lᵀ. With H = Φ̄ P,
    l the log-determinant, and for symmetric gradients of Φ,

    .. math:: \bar K = \bar l \Phi - \Phi H L^T, \quad
              \bar L = 2 \bigl(H - K (\Phi H - \bar l P)\bigr).

    :param covariance: K, [batch, M, M].
    :param precision_tril: L, [M, M].
    :raises CholeskyError: If, in eager mode, B cannot be factorised.
    """

    @tf.custom_gradient
    def differentiable(
        covariance: tf.Tensor, precision_tril: tf.Tensor
    ) -> tuple[
        tuple[tf.Tensor, tf.Tensor], Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    ]:
        identity = tf.eye(tf.shape(precision_tril)[0], dtype=precision_tril.dtype)
        product = _product_with_one(covariance, precision_tril)
        inner = identity + tf.matmul(precision_tril[None], product, transpose_a=True)
        # B needs no jitter.
        no_jitter = tf.zeros_like(inner[:, 0, 0])
        inner_tril = factorise(inner, no_jitter, name="the output layer's I + Lᵀ K L").tril
        transposed = tf.transpose(precision_tril)
        root = tf.linalg.triangular_solve(inner_tril, transposed + tf.zeros_like(inner))
        inverse = tf.matmul(root, root, transpose_a=True)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(inner_tril)), axis=-1)

        def gradient(inverse_bar: tf.Tensor, log_det_bar: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            symmetric = 0.5 * (inverse_bar + tf.linalg.matrix_transpose(inverse_bar))
            log_det_bar = log_det_bar[:, None, None]
            half_inverse = tf.linalg.matrix_transpose(
                tf.linalg.triangular_solve(inner_tril, root, adjoint=True)
            )
            half = tf.matmul(symmetric, half_inverse)
            through_inverse = tf.matmul(inverse, half)
            through_covariance = _sum_of_products(
                covariance, through_inverse - log_det_bar * half_inverse
            )
            return (
                log_det_bar * inverse - _product_with_one(through_inverse, transposed),
                2.0 * (tf.reduce_sum(half, axis=0) - through_covariance),
            )

        return (inverse, log_det), gradient

    return differentiable(covariance, precision_tril)


@check_shapes(
    "matrix: [broadcast batch, M, M]",
    "columns: [broadcast batch, M, N]",
    "return: [batch, N]",
)
def quadratic_forms(matrix: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    r"""Return q with q_n = c_nᵀ Φ c_n, for symmetric Φ and the columns of C.

    :math:`\bar C = 2 \Phi C \operatorname{diag}(\bar q)` and
    :math:`\bar\Phi = C \operatorname{diag}(\bar q) C^T`.

    :param matrix: Φ, [batch, M, M].
    :param columns: C, [batch, M, N].
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, columns: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        product = tf.matmul(matrix, columns)

        def gradient(forms_bar: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            weight = forms_bar[:, None, :]
            matrix_bar = tf.matmul(weight * columns, columns, transpose_b=True)
            columns_bar = (2.0 * weight) * product
            return sum_to(matrix_bar, matrix), sum_to(columns_bar, columns)

        return tf.reduce_sum(columns * product, axis=-2), gradient

    return differentiable(matrix, columns)


@check_shapes("columns: [batch..., M, N]", "return: [batch..., M, M]")
def outer_product(columns: tf.Tensor) -> tf.Tensor:
    r"""Return O = C Cᵀ. :math:`\bar C = (\bar O + \bar O^T) C`.

    :param columns: C, [..., M, N].
    """

    @tf.custom_gradient
    def differentiable(
        columns: tf.Tensor,
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(bar: tf.Tensor) -> tf.Tensor:
            return tf.matmul(bar + tf.linalg.matrix_transpose(bar), columns)

        return tf.matmul(columns, columns, transpose_b=True), gradient

    return differentiable(columns)


def _product_with_one(matrices: tf.Tensor, one: tf.Tensor) -> tf.Tensor:
    """A_s B for each A_s, [S, M, M], and one B, [M, M], as one product of long columns."""
    rows = tf.reshape(matrices, [-1, tf.shape(matrices)[-1]])
    return tf.reshape(tf.matmul(rows, one), tf.shape(matrices))


def _sum_of_products(symmetric: tf.Tensor, matrices: tf.Tensor) -> tf.Tensor:
    """Σ_s A_s B_s for symmetric A_s, both [S, M, M], as one product of long columns."""
    shape = [-1, tf.shape(matrices)[-1]]
    return tf.matmul(tf.reshape(symmetric, shape), tf.reshape(matrices, shape), transpose_a=True)


def _draws_to_columns(draws: tf.Tensor) -> tf.Tensor:
    """[S, M, P] to [1, M, S P]."""
    shape = tf.shape(draws)
    return tf.reshape(tf.transpose(draws, [1, 0, 2]), [1, shape[1], shape[0] * shape[2]])


def _columns_to_draws(columns: tf.Tensor, num_draws: tf.Tensor) -> tf.Tensor:
    """[1, M, S P] to [S, M, P]."""
    shape = tf.shape(columns)
    width = shape[2] // num_draws
    return tf.transpose(tf.reshape(columns, [shape[1], num_draws, width]), [1, 0, 2])
