"""What the Wishart distributions share: a generalised Bartlett factor, pushed through bijectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import (
    RightTriangularProduct,
    SingularCongruence,
    TallCholeskyOuterProduct,
    TriangularCongruence,
)
from gpflow_dwp.distributions._matrix_distribution import MatrixDistribution
from gpflow_dwp.distributions.generalised_bartlett import BARTLETT_EVENT_NDIMS, GeneralisedBartlett

__all__ = ["FactoredGram", "bartlett", "gram", "log_volume_over_minor", "positive_definite"]


class FactoredGram(MatrixDistribution):
    """A Gram matrix G = A T B (A T B)ᵀ, [M, M], of rank R, for a generalised Bartlett factor T.

    Abstract: a class describes to TFP the parameters of A, of B where it is not the identity, and
    of T where it is not that of a Wishart distribution, in this order. A is lower triangular where
    its name is ``scale_tril``. Samples go from T to G; the density goes from G, by the inverses and
    log-determinants of the bijectors, to T.

    :param parameters: The arguments of the distribution.
    :ivar rank: The rank R of a sampled matrix.
    :ivar factor: The distribution of T, [M, R], whose parameters are this one's, too.
    """

    def __init__(self, parameters: dict[str, Any]) -> None:
        names = list(self._parameter_properties(tf.float64))
        with tf.name_scope(parameters["name"]) as scope:
            values = checks.convert_parameters(**{name: parameters[name] for name in names})
            tensors = dict(zip(names, values, strict=True))
            rows = values[0]
            self._size, _ = checks.matrix_shape(names[0], rows, square=True)
            self.df = df = checks.check_df(parameters["df"], self._size)
            self.rank = min(math.ceil(df), self._size)
            self._check_shapes(df, tensors)
            if names[0] == "scale_tril":
                checks.check_tril("scale_tril", rows)
                self._congruence: SingularCongruence = TriangularCongruence(rows, df)
            else:
                self._congruence = SingularCongruence(rows, df)
            self._outer_product = TallCholeskyOuterProduct(self.rank)
            columns = tensors.get("column_mixing_tril")
            self._column_mixing = (
                tfp.bijectors.Identity() if columns is None else RightTriangularProduct(columns)
            )
            self.factor = (
                GeneralisedBartlett(**{name: tensors[name] for name in BARTLETT_EVENT_NDIMS})
                if "loc" in tensors
                else bartlett(
                    tf.constant(0.5 * (df - np.arange(self.rank)), rows.dtype), self._size
                )
            )
            for name in BARTLETT_EVENT_NDIMS:
                setattr(self, name, getattr(self.factor, name))
            for name in names:
                setattr(self, name, tensors[name])
            super().__init__((self._size, self._size), rows.dtype, parameters, scope)

    def mixing(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return A, [..., M, M], ``log|det A|``, [...], and B, [..., R, R]."""
        columns = self._column_mixing._forward(tf.eye(self.rank, dtype=self.dtype))
        return self._congruence._matrix(), self._congruence.log_abs_determinant(), columns

    def _check_shapes(self, df: float, tensors: dict[str, Any]) -> None:
        expected = {"column_mixing_tril": [self.rank] * 2, "loc": [self._size, self.rank]}
        why = f"M = {self._size}, R = min(df, M) = {self.rank} for df = {df}"
        for name in [name for name in expected if name in tensors]:
            checks.check_event(name, tensors[name], expected[name], why)

    # TFP keeps the results of a bijector's public methods, found by the identity of the input. They
    # are stale once a variable has changed, and constants to a gradient tape opened after. So what
    # follows calls the methods behind them.

    def _sample_n(self, n: tf.Tensor, seed: Any = None) -> tf.Tensor:
        # Matrices with a larger batch than the factor's need a factor each.
        each = tfp.distributions.BatchBroadcast(self.factor, self.batch_shape_tensor())
        mixed = self._column_mixing._forward(each.sample(n, seed=seed))
        return gram(tf.matmul(self._congruence._matrix(), mixed))

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        checks.check_event("The value", value, [self._size, self._size], "the event shape")
        if self.dtype != tf.float64:  # in which Cholesky factors of Gram matrices fail
            names = self._parameter_properties(tf.float64)
            wide = self.copy(**{name: tf.cast(getattr(self, name), tf.float64) for name in names})
            return tf.cast(wide.log_prob(tf.cast(value, tf.float64)), self.dtype)
        # G → C = Λ Λᵀ → Λ → T
        log_det = self._congruence._inverse_log_det_jacobian(value)
        mixed = self._outer_product._inverse(self._congruence._inverse(value))
        log_det -= self._outer_product._forward_log_det_jacobian(mixed)
        log_det -= self._column_mixing._forward_log_det_jacobian(mixed)
        return self.factor.log_prob(self._column_mixing._inverse(mixed)) + log_det

    def _entropy(self) -> tf.Tensor:
        if self.rank < self._size:
            raise NotImplementedError(
                "There is no closed form of the entropy of singular matrices."
            )
        rows, log_det_rows, columns = self.mixing()
        # E log|∂G/∂T|, in which |G| has no power where ν = M + 1; that of T does not know ν.
        log_volume = log_volume_over_minor(
            self._size + 1,
            self._size,
            self.factor.mean_log_diagonal(),
            log_det_rows,
            tf.math.log(tf.linalg.diag_part(columns)),
        )
        return tf.broadcast_to(self.factor.entropy() + log_volume, self.batch_shape_tensor())

    def _default_event_space_bijector(self) -> tfp.bijectors.Bijector:
        if self.rank < self._size:
            raise NotImplementedError(
                f"Matrices of rank {self.rank} < {self._size} are no smooth image of all vectors: "
                "take the factor's distribution, and its Gram matrix."
            )
        return positive_definite(self.dtype)

    def _mean(self) -> tf.Tensor:
        # E[G] = A (E[T] B Bᵀ E[T]ᵀ + diag_i(Σ_j Var(T_ij) (B Bᵀ)_jj)) Aᵀ
        mean, variance = self.factor.mean_and_variance()
        rows, _, columns = self.mixing()
        column_norms = tf.reduce_sum(tf.square(columns), axis=-1)
        spread = tf.linalg.diag(tf.reduce_sum(variance * column_norms[..., None, :], axis=-1))
        mean = gram(tf.matmul(rows, tf.matmul(mean, columns))) + self._congruence._forward(spread)
        shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        return tf.broadcast_to(mean, shape)


def log_volume_over_minor(
    df: float,
    size: int,
    log_diagonal: tf.Tensor,
    log_det_rows: tf.Tensor,
    log_diagonal_columns: tf.Tensor,
) -> tf.Tensor:
    r"""Return the logarithm of how T → G = A T B (A T B)ᵀ changes the volume, less that of a minor.

    The log-determinants of appendices A.6 to A.8 of "An Improved Variational Approximate Posterior
    for the Deep Wishart Process" have a term ½ (ν - M - 1) log|G_{:R,:R}|, which the density of a
    Wishart has too, so that a ratio of the two needs neither. What remains is linear in logarithms,
    and its expectation is its value at their expectations:

    .. math:: \nu \log|\det A| + \sum_{j=1}^R
              [\log 2 + (\nu - j) \log T_{jj} + (M + \nu - 2j + 1) \log B_{jj}].

    :param df: Degrees of freedom, ν.
    :param size: Number of rows of the matrix, M.
    :param log_diagonal: log T_jj or its expectation, [..., R].
    :param log_det_rows: ``log|det A|``, [...].
    :param log_diagonal_columns: log B_jj, [..., R].
    :return: Nats, [...].
    """
    rank = min(math.ceil(df), size)
    j = np.arange(1.0, rank + 1.0)
    of_factor = tf.constant(df - j, log_diagonal.dtype) * log_diagonal
    of_columns = tf.constant(size + df - 2.0 * j + 1.0, log_diagonal.dtype) * log_diagonal_columns
    return (
        rank * math.log(2.0)
        + tf.reduce_sum(of_factor, axis=-1)
        + df * log_det_rows
        + tf.reduce_sum(of_columns, axis=-1)
    )


def positive_definite(dtype: tf.DType) -> tfp.bijectors.Bijector:
    """From vectors to all positive definite matrices."""
    tril = tfp.bijectors.FillScaleTriL(diag_shift=np.finfo(dtype.as_numpy_dtype).eps)
    return tfp.bijectors.Chain([tfp.bijectors.CholeskyOuterProduct(), tril])


def gram(factor: tf.Tensor) -> tf.Tensor:
    """Return F Fᵀ, [..., M, M], exactly symmetric, of F, [..., M, R]."""
    product = tf.matmul(factor, factor, transpose_b=True)
    return 0.5 * (product + tf.linalg.matrix_transpose(product))


def bartlett(concentration: tf.Tensor, size: int) -> GeneralisedBartlett:
    """The factor, [M, R], with T_jj² ~ Gamma(α_j, rate ½) and T_ij ~ N(0, 1).

    That of W(I, ν) has α_j = (ν - j + 1)/2.
    """
    dtype, rank = concentration.dtype, concentration.shape[-1]
    return GeneralisedBartlett(
        concentration=concentration,
        rate=tf.constant(np.full(rank, 0.5), dtype),
        loc=tf.constant(np.zeros([size, rank]), dtype),
        scale=tf.constant(np.ones([size, rank]), dtype),
    )
