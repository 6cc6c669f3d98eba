"""Moments of Gaussians given others, with as few passes over targets as their gradients need."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.base import sizes
from gpflow_dwp.linalg.factorisation import Factorised, Gradient, Tensors, sum_to

__all__ = ["conditional_mean", "conditional_moments", "explained_moments"]


@check_shapes(
    "factorised.tril: [batch, M, M]",
    "cross: [batch, M, N]",
    "features: [broadcast S, M, P]",
    "return[0]: [broadcast S, N, P]",
    "return[1]: [batch, N]",
)
def conditional_moments(
    factorised: Factorised,
    cross: tf.Tensor,
    features: tf.Tensor,
    *,
    gradient_dtype: tf.DType | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Mean at N targets given features at M points, and the variance that they explain.

    With k the column of ``cross`` that belongs to a target, these are :math:`k^T K^{-1} Y` and
    :math:`k^T K^{-1} k`. With A = K⁻¹ C for C = ``cross``, W = K⁻¹ Y and
    D = 2 A diag(ē),

    .. math:: \bar Y = A \bar m, \quad \bar C = W \bar m^T + D, \quad
              \bar K = -\bar Y W^T - \tfrac12 D A^T.

    :param factorised: Covariance and its Cholesky factor, K, [batch, M, M].
    :param cross: Covariance of inducing points and targets, C, [batch, M, N].
    :param features: Values at the inducing points, Y, [S, M, P]. Of ``batch`` and S, either may be
        1.
    :param gradient_dtype: The type of numbers in which gradients are worked out, float32 to save
        time; None for that of the arguments. Values are in the latter: the solve would magnify
        float32's rounding by the condition number of K's root.
    :return: Mean, [S, N, P] (or with the leading axis of K), and explained variance, [batch, N].
    """
    gradient_dtype = gradient_dtype or cross.dtype

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor, cross: tf.Tensor, features: tf.Tensor
    ) -> tuple[Tensors, Gradient]:
        weights = tf.linalg.cholesky_solve(tril, features)
        # Long rows make for faster products than long columns, by a factor of two.
        mean = tf.linalg.matrix_transpose(tf.matmul(weights, cross, transpose_a=True))
        whitened = tf.linalg.triangular_solve(tril, cross)
        explained = tf.reduce_sum(tf.square(whitened), axis=-2)
        kept = [tf.cast(part, gradient_dtype) for part in (tril, weights, whitened)]

        def gradient(mean_bar: tf.Tensor, explained_bar: tf.Tensor) -> Tensors:
            tril, weights, whitened = kept
            mean_bar = tf.cast(mean_bar, gradient_dtype)
            explained_bar = tf.cast(explained_bar, gradient_dtype)
            solution = tf.linalg.triangular_solve(tril, whitened, adjoint=True)
            through_variance = solution * (2.0 * explained_bar[:, None, :])
            features_bar = tf.matmul(solution, mean_bar)
            matrix_bar = tf.matmul(features_bar, weights, transpose_b=True)
            matrix_bar += 0.5 * tf.matmul(through_variance, solution, transpose_b=True)
            cross_bar = tf.matmul(weights, mean_bar, transpose_b=True) + through_variance
            return (
                -tf.cast(matrix_bar, matrix.dtype),
                None,
                tf.cast(cross_bar, cross.dtype),
                tf.cast(sum_to(features_bar, features), features.dtype),
            )

        return (mean, explained), gradient

    if factorised.tril.shape[0] != 1:
        return differentiable(*factorised, cross, features)
    mean, explained = differentiable(*factorised, cross, _draws_to_columns(features))
    return _columns_to_draws(mean, sizes(features)[0]), explained


@check_shapes(
    "factorised.tril: [batch, M, M]",
    "cross: [batch, M, N]",
    "features: [broadcast S, M, P]",
    "return: [broadcast S, N, P]",
)
def conditional_mean(factorised: Factorised, cross: tf.Tensor, features: tf.Tensor) -> tf.Tensor:
    """Mean at N targets given features at M points, as of :func:`conditional_moments`, alone.

    It costs in the order of M (M + N) P instead of M² N.

    :param factorised: Covariance and its Cholesky factor, K, [batch, M, M].
    :param cross: Covariance of inducing points and targets, C, [batch, M, N].
    :param features: Values at the inducing points, Y, [S, M, P]. Of ``batch`` and S, either may be
        1.
    :return: [S, N, P] (or with the leading axis of K).
    """
    shared = factorised.tril.shape[0] == 1
    weights = _solve(factorised, _draws_to_columns(features) if shared else features)
    mean = tf.linalg.matrix_transpose(tf.matmul(weights, cross, transpose_a=True))
    return _columns_to_draws(mean, sizes(features)[0]) if shared else mean


@check_shapes(
    "projection: [broadcast batch, R, M]",
    "weights: [broadcast batch, M, P]",
    "cross: [broadcast batch, M, N]",
    "return[0]: [batch, N, P]",
    "return[1]: [batch, N]",
)
def explained_moments(
    projection: tf.Tensor, weights: tf.Tensor, cross: tf.Tensor, *, rooted: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Mean at N targets, Cᵀ w, and the variance that Φ explains there, q with q_n = c_nᵀ Φ c_n.

    .. math:: \bar C = w \bar m^T + 2 \Phi C \operatorname{diag}(\bar q), \quad
              \bar\Phi = C \operatorname{diag}(\bar q) C^T, \quad \bar w = C \bar m,

    and by a root, Φ = Rᵀ R, with V = R C, :math:`\bar R = 2 V \operatorname{diag}(\bar q) C^T`.

    :param projection: Symmetric matrix of the explained variance, Φ, or its root R, [batch, R, M].
    :param weights: Weights of the inducing points, w, [batch, M, P].
    :param cross: Covariance of inducing points and targets, C, [batch, M, N].
    :param rooted: Whether it is the root.
    """

    @tf.custom_gradient
    def differentiable(
        projection: tf.Tensor, weights: tf.Tensor, cross: tf.Tensor
    ) -> tuple[Tensors, Gradient]:
        product = tf.matmul(projection, cross)
        mean = tf.matmul(cross, weights, transpose_a=True)

        def gradient(mean_bar: tf.Tensor, explained_bar: tf.Tensor) -> Tensors:
            weight = explained_bar[:, None, :]
            left = (2.0 * weight) * product if rooted else weight * cross
            projection_bar = tf.matmul(left, cross, transpose_b=True)
            weights_bar = tf.matmul(cross, mean_bar)
            # One array over targets after the other, so that few are in memory together.
            with tf.control_dependencies([projection_bar]):
                cross_bar = (
                    tf.matmul(projection, left, transpose_a=True)
                    if rooted
                    else (2.0 * weight) * product
                )
            with tf.control_dependencies([cross_bar]):
                cross_bar += tf.matmul(weights, mean_bar, transpose_b=True)
            return (
                sum_to(projection_bar, projection),
                sum_to(weights_bar, weights),
                sum_to(cross_bar, cross),
            )

        squares = tf.square(product) if rooted else cross * product
        return (mean, tf.reduce_sum(squares, axis=-2)), gradient

    return differentiable(projection, weights, cross)


def _solve(factorised: Factorised, columns: tf.Tensor) -> tf.Tensor:
    r"""W = K⁻¹ Y, with :math:`\bar Y = K^{-1} \bar W` and :math:`\bar K = -\bar Y W^T`."""

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, tril: tf.Tensor, columns: tf.Tensor
    ) -> tuple[tf.Tensor, Gradient]:
        solution = tf.linalg.cholesky_solve(tril, columns)

        def gradient(solution_bar: tf.Tensor) -> Tensors:
            columns_bar = tf.linalg.cholesky_solve(tril, solution_bar)
            matrix_bar = -tf.matmul(columns_bar, solution, transpose_b=True)
            return matrix_bar, None, sum_to(columns_bar, columns)

        return solution, gradient

    return differentiable(*factorised, columns)


def _draws_to_columns(draws: tf.Tensor) -> tf.Tensor:
    """[S, M, P] to [1, M, S P]: with one K for all draws they are columns of one product."""
    S, M, P = sizes(draws)
    return tf.reshape(tf.transpose(draws, [1, 0, 2]), [1, M, S * P])


def _columns_to_draws(columns: tf.Tensor, num_draws: int | tf.Tensor) -> tf.Tensor:
    """[1, M, S P] to [S, M, P]."""
    _, M, columns_of_all = sizes(columns)
    by_draw = tf.reshape(columns, [M, num_draws, columns_of_all // num_draws])
    return tf.transpose(by_draw, [1, 0, 2])
