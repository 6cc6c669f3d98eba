"""Moments of Gaussians given others, with as few passes over targets as their gradients need."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.linalg._gradients import sum_to
from gpflow_dwp.linalg.factorisation import Factorised, factorise

__all__ = [
    "conditional_moments",
    "outer_product",
    "projected_moments",
    "pseudo_target_posterior",
]


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
    "pseudo_targets: [M, Q]",
    "return[0]: [batch, M, M]",
    "return[1]: [batch, M, Q]",
    "return[2]: [batch]",
)
def pseudo_target_posterior(
    covariance: tf.Tensor, precision_tril: tf.Tensor, pseudo_targets: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    r"""Return Φ = (K + Λ⁻¹)⁻¹, a = Φ v and the divergence of N(K a, K - K Φ K) from N(0, K).

    With Λ = L Lᵀ, B = I + Lᵀ K L, whose eigenvalues are at least 1, and P = L B⁻¹, Φ = P Lᵀ:
    neither K nor Λ is factorised. The divergence, summed over the Q columns of v, is

    .. math:: d = \tfrac12 \{Q \log|B| - Q \operatorname{tr}(\Phi K) + \operatorname{tr}(a^T K a)\}.

    With w = ā + d̄ K a, G the symmetric part of :math:`\bar\Phi + w v^T - \tfrac12 \bar d Q K`,
    and H = G P,

    .. math:: \bar v = \Phi w, \quad
              \bar K = \tfrac12 \bar d\, a a^T - \Phi H L^T, \quad
              \bar L = 2 H - K (2 \Phi H - \bar d Q P).

    :param covariance: K, [batch, M, M].
    :param precision_tril: L, [M, M].
    :param pseudo_targets: v, [M, Q].
    :return: Φ, [batch, M, M], a, [batch, M, Q], and d, [batch].
    :raises CholeskyError: If, in eager mode, B cannot be factorised.
    """

    @tf.custom_gradient
    def differentiable(
        covariance: tf.Tensor, precision_tril: tf.Tensor, pseudo_targets: tf.Tensor
    ) -> tuple[
        tuple[tf.Tensor, tf.Tensor, tf.Tensor],
        Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    ]:
        num_columns = tf.cast(tf.shape(pseudo_targets)[1], covariance.dtype)
        identity = tf.eye(tf.shape(precision_tril)[0], dtype=precision_tril.dtype)
        product = _product_with_one(covariance, precision_tril)
        inner = identity + tf.matmul(precision_tril[None], product, transpose_a=True)
        # B needs no jitter.
        no_jitter = tf.zeros_like(inner[:, 0, 0])
        inner_tril = factorise(inner, no_jitter, name="the output layer's I + Lᵀ K L").tril
        transposed = tf.transpose(precision_tril)
        root = tf.linalg.triangular_solve(inner_tril, transposed + tf.zeros_like(inner))
        inverse = tf.matmul(root, root, transpose_a=True)
        weights = tf.matmul(inverse, pseudo_targets)
        expected = tf.matmul(covariance, weights)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(inner_tril)), axis=-1)
        trace = tf.reduce_sum(inverse * covariance, axis=[-2, -1])
        quadratic = tf.reduce_sum(weights * expected, axis=[-2, -1])

        def gradient(
            inverse_bar: tf.Tensor, weights_bar: tf.Tensor, divergence_bar: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            # Half of what follows could be done before this is known, and would then be kept.
            with tf.control_dependencies([inverse_bar]):
                scale = tf.identity(divergence_bar)[:, None, None]
            weights_bar += scale * expected
            total = inverse_bar + tf.matmul(weights_bar, pseudo_targets, transpose_b=True)
            total -= (0.5 * num_columns * scale) * covariance
            symmetric = 0.5 * (total + tf.linalg.matrix_transpose(total))
            half_inverse = tf.linalg.matrix_transpose(
                tf.linalg.triangular_solve(inner_tril, root, adjoint=True)
            )
            half = tf.matmul(symmetric, half_inverse)
            through_inverse = tf.matmul(inverse, half)
            through_covariance = _sum_of_products(
                covariance, 2.0 * through_inverse - (num_columns * scale) * half_inverse
            )
            through_weights = tf.matmul((0.5 * scale) * weights, weights, transpose_b=True)
            return (
                through_weights - _product_with_one(through_inverse, transposed),
                2.0 * tf.reduce_sum(half, axis=0) - through_covariance,
                tf.reduce_sum(tf.matmul(inverse, weights_bar), axis=0),
            )

        divergence = 0.5 * (num_columns * (log_det - trace) + quadratic)
        return (inverse, weights, divergence), gradient

    return differentiable(covariance, precision_tril, pseudo_targets)


@check_shapes(
    "inverse: [broadcast batch, M, M]",
    "weights: [broadcast batch, M, P]",
    "cross: [broadcast batch, M, N]",
    "return[0]: [batch, N, P]",
    "return[1]: [batch, N]",
)
def projected_moments(
    inverse: tf.Tensor, weights: tf.Tensor, cross: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Mean at N targets, Cᵀ w, and the variance that Φ explains there, q with q_n = c_nᵀ Φ c_n.

    .. math:: \bar C = w \bar m^T + 2 \Phi C \operatorname{diag}(\bar q), \quad
              \bar\Phi = C \operatorname{diag}(\bar q) C^T, \quad \bar w = C \bar m.

    :param inverse: Φ, symmetric, [batch, M, M].
    :param weights: w, [batch, M, P].
    :param cross: C, [batch, M, N].
    """

    @tf.custom_gradient
    def differentiable(
        inverse: tf.Tensor, weights: tf.Tensor, cross: tf.Tensor
    ) -> tuple[
        tuple[tf.Tensor, tf.Tensor],
        Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    ]:
        product = tf.matmul(inverse, cross)
        mean = tf.matmul(cross, weights, transpose_a=True)

        def gradient(
            mean_bar: tf.Tensor, explained_bar: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            weight = explained_bar[:, None, :]
            inverse_bar = tf.matmul(weight * cross, cross, transpose_b=True)
            weights_bar = tf.matmul(cross, mean_bar)
            # One array over targets after the other, so that few are in memory together.
            with tf.control_dependencies([inverse_bar]):
                cross_bar = (2.0 * weight) * product
            with tf.control_dependencies([cross_bar]):
                cross_bar += tf.matmul(weights, mean_bar, transpose_b=True)
            return (
                sum_to(inverse_bar, inverse),
                sum_to(weights_bar, weights),
                sum_to(cross_bar, cross),
            )

        return (mean, tf.reduce_sum(cross * product, axis=-2)), gradient

    return differentiable(inverse, weights, cross)


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
