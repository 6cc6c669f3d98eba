"""Posteriors over the inducing points of an output layer, with their divergence from the prior."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.base import sizes
from gpflow_dwp.linalg.factorisation import (
    Factorised,
    Gradient,
    Tensors,
    factorise,
    half_lower,
    unwhiten_both_sides,
    whiten_both_sides,
)

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
    With t = R v and N = L_B⁻¹ L_B⁻ᵀ, the gradients of t and of R by all three results are

    .. math:: \bar t = R \bar a + \bar d (t - N t), \quad
              \hat R = \bar R + t \bar a^T + \bar t v^T,

    and, with low(X) the lower triangle of X with half its diagonal, and sym(X) its symmetric part,

    .. math:: Z &= 2 \operatorname{sym}(\operatorname{low}(\hat R R^T - \bar d\, t (N t)^T
                   + \bar d Q (N - I))), \\
              \bar K &= -\tfrac12 R^T Z R, \quad
              \bar L = (\hat R - Z R K)^T L_B^{-1}, \quad
              \bar v = R^T \bar t.

    :param covariance: Covariance at the inducing points, K, [batch, M, M].
    :param precision_tril: Cholesky factor of the pseudo-targets' precision, L, [M, M].
    :param pseudo_targets: Pseudo-targets, v, [M, Q].
    :return: R, [batch, M, M], a, [batch, M, Q], and d, [batch].
    :raises CholeskyError: If, in eager mode, B cannot be factorised.
    """

    @tf.custom_gradient
    def differentiable(K: tf.Tensor, L: tf.Tensor, v: tf.Tensor) -> tuple[Tensors, Gradient]:
        Q = tf.cast(sizes(v)[1], K.dtype)
        identity = tf.eye(sizes(L)[0], dtype=L.dtype)
        B = identity + tf.matmul(L[None], _product_with_one(K, L), transpose_a=True)
        L_B, log_det_B = _factorise_well_conditioned(B, "the output layer's I + Lᵀ K L")
        R = tf.linalg.triangular_solve(L_B, tf.transpose(L)[None])
        L_B_inverse = tf.linalg.triangular_solve(L_B, identity[None])
        t = tf.matmul(R, v)
        a = tf.matmul(R, t, transpose_a=True)
        # tr(Φ K) = M - tr(B⁻¹), and tr(aᵀ K a) = tr(tᵀ (I - N) t), as R K Rᵀ = I - N.
        L_B_inverse_t = tf.matmul(L_B_inverse, t, transpose_a=True)
        trace = tf.reduce_sum(1.0 - tf.reduce_sum(tf.square(L_B_inverse), axis=-1), axis=-1)
        quadratic = tf.reduce_sum(tf.square(t) - tf.square(L_B_inverse_t), axis=[-2, -1])

        def gradient(R_bar: tf.Tensor, a_bar: tf.Tensor, d_bar: tf.Tensor) -> Tensors:
            # Some of what follows could be done before this is known, and would then be kept.
            with tf.control_dependencies([R_bar]):
                d_bar = tf.identity(d_bar)[:, None, None]
            N = tf.matmul(L_B_inverse, L_B_inverse, transpose_b=True)
            N_t = tf.matmul(L_B_inverse, L_B_inverse_t)
            t_bar = tf.matmul(R, a_bar) + d_bar * (t - N_t)
            # Few passes over matrices, which take as long as products do.
            left = tf.concat([t, t_bar], axis=-1)
            right = tf.concat([a_bar, v + tf.zeros_like(a_bar)], axis=-1)
            R_hat = R_bar + tf.matmul(left, right, transpose_b=True)
            Z = tf.matmul(R_hat, R, transpose_b=True) + (Q * d_bar) * (N - identity)
            Z = half_lower(Z - tf.matmul(d_bar * t, N_t, transpose_b=True))
            Z += tf.linalg.matrix_transpose(Z)
            Z_R = tf.matmul(Z, R)
            return (
                -0.5 * tf.matmul(R, Z_R, transpose_a=True),
                _sum_of_products(R_hat - tf.matmul(Z_R, K), L_B_inverse),
                tf.reduce_sum(tf.matmul(R, t_bar, transpose_a=True), axis=0),
            )

        return (R, a, 0.5 * (Q * (log_det_B - trace) + quadratic)), gradient

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

    :param prior: Covariance at the inducing points, K = L Lᵀ, [batch, M, M].
    :param cross: Covariance of inducing points and targets, C, [batch, M, N].
    :param targets: Observations, y, [N, Q].
    :param precision: Precision of the noise, τ, [].
    :return: Φ, [batch, M, M], a, [batch, M, Q], and d, [batch].
    :raises CholeskyError: If, in eager mode, B cannot be factorised.
    """

    @tf.custom_gradient
    def differentiable(
        matrix: tf.Tensor, L: tf.Tensor, C: tf.Tensor, y: tf.Tensor, tau: tf.Tensor
    ) -> tuple[Tensors, Gradient]:
        Q = tf.cast(sizes(y)[1], L.dtype)
        identity = tf.eye(sizes(L)[-1], dtype=L.dtype)
        A = tf.linalg.triangular_solve(L, C)
        A_A = tf.matmul(A, A, transpose_b=True)
        A_y = tf.matmul(A, y)
        B = identity + tau * A_A
        L_B, log_det_B = _factorise_well_conditioned(B, "the output layer's I + τ A Aᵀ")
        L_B_inverse = tf.linalg.triangular_solve(L_B, identity[None])
        B_inverse = tf.matmul(L_B_inverse, L_B_inverse, transpose_a=True)
        P = identity - B_inverse
        w = tau * tf.matmul(B_inverse, A_y)
        Phi = unwhiten_both_sides(L, P)
        a = tf.linalg.triangular_solve(L, w, adjoint=True)
        quadratic = tf.reduce_sum(tf.square(w), axis=[-2, -1])

        def gradient(Phi_bar: tf.Tensor, a_bar: tf.Tensor, d_bar: tf.Tensor) -> Tensors:
            d_bar = d_bar[:, None, None]
            E = whiten_both_sides(L, Phi_bar)
            g = tf.matmul(B_inverse, tf.linalg.triangular_solve(L, a_bar) + d_bar * w)
            g_w = tf.matmul(g, w, transpose_b=True)
            inner = E + (0.5 * Q * tau * d_bar) * A_A
            B_bar = tf.matmul(B_inverse, tf.matmul(inner, B_inverse))
            B_bar -= 0.5 * (g_w + tf.linalg.matrix_transpose(g_w))
            L_inverse_B_bar = tf.linalg.triangular_solve(L, B_bar, adjoint=True)
            L_inverse_g = tf.linalg.triangular_solve(L, g, adjoint=True)
            C_bar = tf.matmul((2.0 * tau) * L_inverse_B_bar, A)
            C_bar += tf.matmul(tau * L_inverse_g, y, transpose_b=True)
            of_divergence = Q * Phi - tf.matmul(a, a, transpose_b=True)
            return (
                unwhiten_both_sides(L, B_bar - E) - (0.5 * d_bar) * of_divergence,
                None,
                C_bar,
                tau * tf.reduce_sum(tf.matmul(A, g, transpose_a=True), axis=0),
                tf.reduce_sum(B_bar * A_A) + tf.reduce_sum(g * A_y),
            )

        return (Phi, a, 0.5 * (Q * (log_det_B - tf.linalg.trace(P)) + quadratic)), gradient

    return differentiable(*prior, cross, targets, precision)


def _factorise_well_conditioned(B: tf.Tensor, name: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The root of a matrix that needs no jitter, [S, M, M], and its log-determinant, [S]."""
    tril = factorise(B, None, name=name).tril
    return tril, 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tril)), axis=-1)


def _product_with_one(matrices: tf.Tensor, one: tf.Tensor) -> tf.Tensor:
    """A_s B for each A_s, [S, M, M], and one B, [M, M], as one product of long columns."""
    S, M, _ = sizes(matrices)
    return tf.reshape(tf.matmul(tf.reshape(matrices, [S * M, M]), one), [S, M, M])


def _sum_of_products(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Σ_s A_sᵀ B_s, both [S, M, M], as one product of long columns."""
    S, M, _ = sizes(left)
    left, right = (tf.reshape(matrices, [S * M, M]) for matrices in (left, right))
    return tf.matmul(left, right, transpose_a=True)
