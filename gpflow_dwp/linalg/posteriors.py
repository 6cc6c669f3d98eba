"""Posteriors over the inducing points of an output layer, with their divergence from the prior."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.linalg._gradients import unwhiten_both_sides, whiten_both_sides
from gpflow_dwp.linalg.factorisation import Factorised, factorise

__all__ = ["pseudo_target_posterior", "regression_posterior"]


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
    "prior.tril: [batch, M, M]",
    "cross: [batch, M, N]",
    "targets: [N, Q]",
    "precision: []",
    "return[0]: [batch, M, M]",
    "return[1]: [batch, M, Q]",
    "return[2]: [batch]",
)
def regression_posterior(
    prior: Factorised, cross: tf.Tensor, targets: tf.Tensor, precision: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    r"""Return Φ = K⁻¹ - Σ⁻¹, Σ = K + τ C Cᵀ, a = τ Σ⁻¹ C y and the divergence from N(0, K).

    With A = L⁻¹ C, B = I + τ A Aᵀ, whose eigenvalues are at least 1, P = I - B⁻¹ and
    w = τ B⁻¹ A y, these are Φ = L⁻ᵀ P L⁻¹, a = L⁻ᵀ w and, summed over the Q columns of y,

    .. math:: d = \tfrac12 \{Q (\log|B| - \operatorname{tr} P) + \operatorname{tr}(w^T w)\}.

    Σ itself is never formed: for little noise its condition number is that of K times N τ, and
    values and gradients would be lost to rounding. With E the symmetric part of
    :math:`L^{-1} \bar\Phi L^{-T}` and :math:`g = B^{-1} (L^{-1} \bar a + \bar d w)`,

    .. math:: \bar B &= B^{-1} (E + \tfrac12 \bar d Q \tau A A^T) B^{-1}
                       - \tfrac12 (g w^T + w g^T), \\
              \bar C &= \tau L^{-T} (2 \bar B A + g y^T), \\
              \bar K &= L^{-T} (\bar B - E) L^{-1} - \tfrac12 \bar d (Q \Phi - a a^T), \\
              \bar y &= \tau A^T g, \\
              \bar\tau &= \operatorname{tr}(\bar B A A^T) + \operatorname{tr}(g^T A y).

    :param prior: K = L Lᵀ, [batch, M, M].
    :param cross: C, [batch, M, N].
    :param targets: y, [N, Q].
    :param precision: τ, [].
    :return: Φ, [batch, M, M], a, [batch, M, Q], and d, [batch].
    :raises CholeskyError: If, in eager mode, B cannot be factorised.
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor,
        tril: tf.Tensor,
        cross: tf.Tensor,
        targets: tf.Tensor,
        precision: tf.Tensor,
    ) -> tuple[
        tuple[tf.Tensor, tf.Tensor, tf.Tensor],
        Callable[..., tuple[tf.Tensor, None, tf.Tensor, tf.Tensor, tf.Tensor]],
    ]:
        num_columns = tf.cast(tf.shape(targets)[1], tril.dtype)
        identity = tf.eye(tf.shape(tril)[-1], dtype=tril.dtype)
        design = tf.linalg.triangular_solve(tril, cross)
        outer = tf.matmul(design, design, transpose_b=True)
        information = tf.matmul(design, targets)
        inner = identity + precision * outer
        # B needs no jitter.
        no_jitter = tf.zeros_like(inner[:, 0, 0])
        inner_tril = factorise(inner, no_jitter, name="the output layer's I + τ A Aᵀ").tril
        root = tf.linalg.triangular_solve(inner_tril, identity + tf.zeros_like(inner))
        inner_inverse = tf.matmul(root, root, transpose_a=True)
        gain = identity - inner_inverse
        whitened = precision * tf.matmul(inner_inverse, information)
        inverse = unwhiten_both_sides(tril, gain)
        weights = tf.linalg.triangular_solve(tril, whitened, adjoint=True)
        volume = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(inner_tril)), axis=-1)
        volume -= tf.linalg.trace(gain)
        quadratic = tf.reduce_sum(tf.square(whitened), axis=[-2, -1])

        def gradient(
            inverse_bar: tf.Tensor, weights_bar: tf.Tensor, divergence_bar: tf.Tensor
        ) -> tuple[tf.Tensor, None, tf.Tensor, tf.Tensor, tf.Tensor]:
            scale = divergence_bar[:, None, None]
            projected = whiten_both_sides(tril, inverse_bar)
            whitened_bar = tf.linalg.triangular_solve(tril, weights_bar) + scale * whitened
            solved = tf.matmul(inner_inverse, whitened_bar)
            rank_one = tf.matmul(solved, whitened, transpose_b=True)
            total = projected + (0.5 * num_columns * precision * scale) * outer
            inner_bar = tf.matmul(inner_inverse, tf.matmul(total, inner_inverse))
            inner_bar -= 0.5 * (rank_one + tf.linalg.matrix_transpose(rank_one))
            from_design = tf.linalg.triangular_solve(tril, inner_bar, adjoint=True)
            from_targets = tf.linalg.triangular_solve(tril, solved, adjoint=True)
            cross_bar = tf.matmul((2.0 * precision) * from_design, design)
            cross_bar += tf.matmul(precision * from_targets, targets, transpose_b=True)
            through_prior = num_columns * inverse - tf.matmul(weights, weights, transpose_b=True)
            return (
                unwhiten_both_sides(tril, inner_bar - projected) - (0.5 * scale) * through_prior,
                None,
                cross_bar,
                precision * tf.reduce_sum(tf.matmul(design, solved, transpose_a=True), axis=0),
                tf.reduce_sum(inner_bar * outer) + tf.reduce_sum(solved * information),
            )

        return (inverse, weights, 0.5 * (num_columns * volume + quadratic)), gradient

    return differentiable(*prior, cross, targets, precision)


def _product_with_one(matrices: tf.Tensor, one: tf.Tensor) -> tf.Tensor:
    """A_s B for each A_s, [S, M, M], and one B, [M, M], as one product of long columns."""
    rows = tf.reshape(matrices, [-1, tf.shape(matrices)[-1]])
    return tf.reshape(tf.matmul(rows, one), tf.shape(matrices))


def _sum_of_products(symmetric: tf.Tensor, matrices: tf.Tensor) -> tf.Tensor:
    """Σ_s A_s B_s for symmetric A_s, both [S, M, M], as one product of long columns."""
    shape = [-1, tf.shape(matrices)[-1]]
    return tf.matmul(tf.reshape(symmetric, shape), tf.reshape(matrices, shape), transpose_a=True)
