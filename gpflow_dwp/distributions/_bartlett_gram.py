"""Statistics of Gram matrices whose factor has independent entries."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from gpflow_dwp.distributions._factored_gram import FactoredGram
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett

__all__ = ["BartlettGram"]


class BartlettGram(FactoredGram):
    """G = A T B (A T B)ᵀ for a generalised Bartlett factor T. Abstract."""

    _factor: GeneralisedBartlett

    @property
    def df(self) -> int:
        """The degrees of freedom ν."""
        return self._congruence.df

    @property
    def factor(self) -> GeneralisedBartlett:
        """The distribution of T, [M, R]."""
        return self._factor

    def mixing(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return A, [..., M, M], ``log|det A|``, [...], and B, [..., R, R]."""
        columns = self._column_mixing._forward(tf.eye(self._rank, dtype=self.dtype))
        return self._congruence._matrix(), self._congruence.log_abs_determinant(), columns

    def _mean(self) -> tf.Tensor:
        # E[G] = A (E[T] B Bᵀ E[T]ᵀ + diag_i(Σ_j Var(T_ij) (B Bᵀ)_jj)) Aᵀ
        mean, variance = self._factor.mean_and_variance()
        mean = self._congruence.mix_rows(self._column_mixing._forward(mean))
        column_norms = tf.linalg.diag_part(self._column_gram())
        variance = tf.reduce_sum(variance * column_norms[..., None, :], axis=-1)
        spread = self._congruence._forward(tf.linalg.diag(variance))
        return self._at_batch_shape(self._gram(mean) + spread)

    def _variance(self) -> tf.Tensor:
        """Of G_ij = Σ A_ik A_jl W_cd T_kc T_ld, a quadratic form in independent variables.

        tᵀQt for symmetric Q and independent t of cumulants m, v, s and κ has variance
        2 Σ_ab Q_ab² v_a v_b + 4 Σ_a v_a (Qm)_a² + 4 Σ_a s_a Q_aa (Qm)_a + Σ_a κ_a Q_aa². Here,
        with W = B Bᵀ and U = A E[T] W, (Qm)_kc = ½ (A_ik U_jc + A_jk U_ic) and
        Q_kc,ld = ½ W_cd (A_ik A_jl + A_jk A_il). Only the diagonal of T has s and κ.
        """
        mean, variance = self._factor.mean_and_variance()
        rows, column_gram = self.mixing()[0], self._column_gram()
        mixed_mean = tf.matmul(rows, tf.matmul(mean, column_gram))
        # N_ijc = Σ_k A_ik A_jk v_kc, and N_iic.
        mixed = tf.matmul(_row_products(rows), variance[..., None, :, :])
        own = tf.matmul(rows**2, variance)
        squares = column_gram**2
        result = tf.matmul(tf.matmul(own, squares), own, transpose_b=True)
        result += tf.reduce_sum(tf.matmul(mixed, squares[..., None, :, :]) * mixed, axis=-1)
        result += 2.0 * tf.reduce_sum(mixed * _row_products(mixed_mean), axis=-1)
        third, fourth = self._factor.cumulants_of_diagonal()
        weights = tf.linalg.diag_part(column_gram)
        leading = rows[..., : self._rank]
        cross = tf.matmul(own, mixed_mean**2, transpose_b=True) + 2.0 * tf.matmul(
            leading**2 * (third * weights)[..., None, :], leading * mixed_mean, transpose_b=True
        )
        result += cross + tf.linalg.matrix_transpose(cross)
        result += tf.matmul(
            leading**2 * (fourth * weights**2)[..., None, :], leading**2, transpose_b=True
        )
        return self._at_batch_shape(result)

    def _mode(self) -> tf.Tensor:
        # With a constant Jacobian of A and B, p(G) is p(T) Π_j T_jj^-(M - j + 1), up to a factor.
        self._require_constant_jacobian("mode")
        factor = self._factor.mode_under(
            -self._entries_of_columns(),
            allow_nan=self.allow_nan_stats,
            message="The mode is defined where 2 α_j >= M - j + 2 for all j only.",
        )
        mode = self._gram(self._congruence.mix_rows(self._column_mixing._forward(factor)))
        return self._at_batch_shape(mode)

    def _entropy(self) -> tf.Tensor:
        # That of T, and the expected log-determinants of T → T B = Λ → Λ Λᵀ → G.
        self._require_constant_jacobian("entropy")
        log_diagonal = self._factor.mean_log_diagonal()
        log_diagonal += 2.0 * tf.math.log(tf.linalg.diag_part(self.mixing()[2]))
        log_det = self._congruence.constant_log_det() + self._rank * math.log(2.0)
        log_det += tf.reduce_sum(self._entries_of_columns() * log_diagonal, axis=-1)
        entropy = self._factor.entropy() + log_det
        return tf.broadcast_to(entropy, self.batch_shape_tensor())

    def _require_constant_jacobian(self, statistic: str) -> None:
        if not self._congruence.is_constant_jacobian:
            raise NotImplementedError(
                f"The {statistic} of {type(self).__name__} has a closed form for df >= M only, "
                f"got df = {self.df}, M = {self._size}."
            )

    def _entries_of_columns(self) -> tf.Tensor:
        """The number M - j + 1 of entries of T in column j, [R]."""
        return tf.constant(self._size - np.arange(self._rank), self.dtype)

    def _column_gram(self) -> tf.Tensor:
        """W = B Bᵀ, [..., R, R]."""
        return self._gram(self.mixing()[2])


def _row_products(matrix: tf.Tensor) -> tf.Tensor:
    """X_ik X_jk for all i, j, k, [..., M, M, R]."""
    return matrix[..., :, None, :] * matrix[..., None, :, :]
