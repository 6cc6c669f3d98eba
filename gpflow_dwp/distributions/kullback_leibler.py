"""Kullback-Leibler divergences, registered with TFP, and what a layer's bound shares with them.

They are what ``q.kl_divergence(p)`` finds: from any of the (generalised) singular Wisharts to a
Wishart of the same rank, and between two inverse Wisharts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from scipy.special import multigammaln

from gpflow_dwp.distributions._factored_gram import FactoredGram, log_volume_over_minor
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett
from gpflow_dwp.distributions.inverse_wishart import InverseWishart
from gpflow_dwp.distributions.wisharts import SingularWishart
from gpflow_dwp.linalg.factorisation import weighted_gram

__all__ = ["expected_squared_norm", "log_volume_over_minor", "wishart_log_normaliser"]


def expected_squared_norm(
    factor: GeneralisedBartlett,
    rows: tf.Tensor,
    columns: tf.Tensor,
    precision: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return E‖C A T B‖² = tr(CᵀC E[A T B Bᵀ Tᵀ Aᵀ]), [...].

    The entries of T are independent, so the second moment on the right is
    Y Yᵀ + A diag_i(Σ_j Var(T_ij) ‖B_j:‖²) Aᵀ for Y = A E[T] B.

    :param factor: The distribution of T, [..., M, R].
    :param rows: What multiplies T from the left, A, [..., M, M].
    :param columns: What multiplies T from the right, B, [..., R, R].
    :param precision: CᵀC, [..., M, M], of a factor without batch; or None for the identity.
    """
    mean, variance = factor.mean_and_variance()
    mean = tf.matmul(rows, tf.matmul(mean, columns))
    spread = tf.linalg.matvec(variance, tf.reduce_sum(tf.square(columns), axis=-1))
    if precision is None:
        column_norms = tf.reduce_sum(tf.square(rows), axis=-2)
        squared_mean = tf.reduce_sum(tf.square(mean), axis=[-2, -1])
        return squared_mean + tf.reduce_sum(column_norms * spread, axis=-1)
    second_moment = tf.matmul(mean, mean, transpose_b=True) + weighted_gram(rows, spread)
    return tf.reduce_sum(precision * second_moment, axis=[-2, -1])


def wishart_log_normaliser(df: float, size: int) -> float:
    """Return what the log-density of W(S, ν) has besides terms of S and of the matrix.

    ½ ν (R - M) log π - ½ ν M log 2 - log Γ_R(½ ν), from equation (30) of the paper.

    :param df: Degrees of freedom, ν.
    :param size: Number of rows of the matrix, M.
    """
    rank = min(math.ceil(df), size)
    return float(
        0.5 * df * (rank - size) * math.log(math.pi)
        - 0.5 * df * size * math.log(2.0)
        - multigammaln(0.5 * df, rank)
    )


@tfp.distributions.RegisterKL(FactoredGram, SingularWishart)
@tfp.distributions.RegisterKL(FactoredGram, tfp.distributions.WishartTriL)
@tfp.distributions.RegisterKL(tfp.distributions.WishartTriL, SingularWishart)
def _gram_to_wishart(q: Any, p: Any, name: str | None = None) -> tf.Tensor:
    """E[log q(G) - log p(G)], where tr(S⁻¹ G) = ‖L⁻¹ A T B‖² and the minors of G cancel.

    Above full rank they do so for any ν, as their power in the Jacobian does not depend on it.
    """
    q, p = _as_ours(q), _as_ours(p)
    _check_shapes(q, p)
    if q.rank != p.rank:
        raise ValueError(
            "The divergence to a Wishart distribution of another rank is infinite: df must be "
            f"equal, or both at least M, got {q.df} and {p.df} for M = {p.event_shape[-1]}."
        )
    with tf.name_scope(name or "kl_to_wishart"):
        rows, log_det_rows, columns = q.mixing()
        p_tril, p_log_det, _ = p.mixing()
        size, factor = q.event_shape[-1], q.factor
        log_volume = log_volume_over_minor(
            p.df,
            size,
            factor.mean_log_diagonal(),
            log_det_rows - p_log_det,
            tf.math.log(tf.linalg.diag_part(columns)),
        )
        rows = tf.linalg.triangular_solve(p_tril, rows)
        return (
            0.5 * expected_squared_norm(factor, rows, columns)
            - factor.entropy()
            - log_volume
            - wishart_log_normaliser(p.df, size)
        )


def _as_ours(wishart: Any) -> FactoredGram:
    if isinstance(wishart, FactoredGram):
        return wishart
    df = tf.get_static_value(wishart.df)
    if df is None or np.ndim(df):
        raise NotImplementedError(f"df must be one known number, got {wishart.df}.")
    return SingularWishart(float(df), wishart.scale_tril)


@tfp.distributions.RegisterKL(InverseWishart, InverseWishart)
def _between_inverse_wisharts(
    q: InverseWishart, p: InverseWishart, name: str | None = None
) -> tf.Tensor:
    _check_shapes(q, p)
    with tf.name_scope(name or "kl_inverse_wisharts"):
        q_alpha, p_alpha = q.precision_factor.concentration, p.precision_factor.concentration
        q_tril, p_tril = q._tril(), p._tril()
        q_df, p_df = tf.convert_to_tensor(q.df), tf.convert_to_tensor(p.df)
        # Under q, E log|G| = log|Ψ_q| - M log 2 - Σ_j ψ(α_j) and E G⁻¹ = n_q Ψ_q⁻¹.
        q_diagonal, p_diagonal = tf.linalg.diag_part(q_tril), tf.linalg.diag_part(p_tril)
        log_det_ratio = tf.reduce_sum(tf.math.log(q_diagonal) - tf.math.log(p_diagonal), axis=-1)
        log_gamma_ratio = tf.reduce_sum(tf.math.lgamma(q_alpha) - tf.math.lgamma(p_alpha), axis=-1)
        digamma = tf.reduce_sum(tf.math.digamma(q_alpha), axis=-1)
        trace = tf.reduce_sum(tf.linalg.triangular_solve(q_tril, p_tril) ** 2, axis=[-2, -1])
        return (
            p_df * log_det_ratio
            - log_gamma_ratio
            + 0.5 * (q_df - p_df) * digamma
            + 0.5 * q_df * (trace - q.event_shape[-1])
        )


def _check_shapes(q: Any, p: Any) -> None:
    if q.event_shape != p.event_shape:
        raise ValueError(
            f"Both distributions must have one event shape, got {q.event_shape} and "
            f"{p.event_shape}."
        )
