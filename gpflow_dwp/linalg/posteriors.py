"""Posteriors over the inducing points of an output layer, with their divergence from the prior."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.linalg._gradients import half_lower, unwhiten_both_sides, whiten_both_sides
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
    r"""Return a root of Φ = (K + Λ⁻¹)⁻¹, a = Φ v and KL[N(K a, K - K Φ K) ‖ N(0, K)].

    With Λ = L Lᵀ and B = I + Lᵀ K L = L_B L_Bᵀ, whose eigenvalues are at least 1, the root is
    R = L_B⁻¹ Lᵀ, so that Φ = Rᵀ R: neither K nor Λ is factorised. The divergence, summed over the Q
    columns of v, is

    .. math:: d = \tfrac12 \{Q \log|B| - Q \operatorname{tr}(\Phi K) + \operatorname{tr}(a^T K a)\}.

    Φ is the inverse of what may be nearly singular, and :math:`\bar K = -\Phi \bar\Phi \Phi` would
    take away most of a gradient Φ̄, with its digits; that of R is smaller by the root of that.
    With t = R v, N = L_B⁻¹ L_B⁻ᵀ, r = R ā + d̄ (t - N t), the gradient
    :math:`\hat R = \bar R + t \bar a^T + r v^T` of R by all three results, low(X) the lower
    triangle of X with half its diagonal, and sym(X) its symmetric part,

    .. math:: Z &= \operatorname{sym}(\operatorname{low}(\hat R R^T - \bar d\, t (N t)^T))
                   - \tfrac12 \bar d Q (I - N), \\
              \bar K &= -R^T Z R, \quad
              \bar L = (\hat R^T - 2 K R^T Z) L_B^{-1}, \quad
              \bar v = R^T r.

    :param covariance: K, [batch, M, M].
    :param precision_tril: L, [M, M].
    :param pseudo_targets: v, [M, Q].
    :return: R, [batch, M, M], a, [batch, M, Q], and d, [batch].
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
        root = tf.linalg.triangular_solve(
            inner_tril, tf.transpose(precision_tril) + tf.zeros_like(inner)
        )
        inner_root = tf.linalg.triangular_solve(inner_tril, identity + tf.zeros_like(inner))
        # tr(Φ K) = M - tr(B⁻¹), and R K Rᵀ = I - N.
        whitened = tf.matmul(root, pseudo_targets)
        weights = tf.matmul(root, whitened, transpose_a=True)
        half_remainder = tf.matmul(inner_root, whitened, transpose_a=True)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(inner_tril)), axis=-1)
        trace = tf.reduce_sum(1.0 - tf.reduce_sum(tf.square(inner_root), axis=-1), axis=-1)
        quadratic = tf.reduce_sum(tf.square(whitened) - tf.square(half_remainder), axis=[-2, -1])

        def gradient(
            root_bar: tf.Tensor, weights_bar: tf.Tensor, divergence_bar: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            # Some of what follows could be done before this is known, and would then be kept.
            with tf.control_dependencies([root_bar]):
                scale = tf.identity(divergence_bar)[:, None, None]
            outer = tf.matmul(inner_root, inner_root, transpose_b=True)
            remainder = tf.matmul(inner_root, half_remainder)
            whitened_bar = tf.matmul(root, weights_bar) + scale * (whitened - remainder)
            root_bar += tf.matmul(whitened, weights_bar, transpose_b=True)
            root_bar += tf.matmul(
                whitened_bar, pseudo_targets + tf.zeros_like(weights_bar), transpose_b=True
            )
            middle = tf.matmul(root_bar, root, transpose_b=True)
            middle -= tf.matmul(scale * whitened, remainder, transpose_b=True)
            middle = half_lower(middle)
            middle = 0.5 * (middle + tf.linalg.matrix_transpose(middle))
            middle -= (0.5 * num_columns * scale) * (identity - outer)
            through_root = tf.matmul(root, middle, transpose_a=True)
            transposed_bar = tf.linalg.matrix_transpose(root_bar)
            transposed_bar -= 2.0 * tf.matmul(covariance, through_root)
            return (
                -tf.matmul(through_root, root),
                _sum_of_products(transposed_bar, inner_root),
                tf.reduce_sum(tf.matmul(root, whitened_bar, transpose_a=True), axis=0),
            )

        divergence = 0.5 * (num_columns * (log_det - trace) + quadratic)
        return (root, weights, divergence), gradient

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


def _sum_of_products(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Σ_s A_s B_s, both [S, M, M], as one product of long rows."""
    size = tf.shape(left)[-1]
    rows = tf.reshape(tf.transpose(left, [1, 0, 2]), [size, -1])
    return tf.matmul(rows, tf.reshape(right, [-1, size]))
