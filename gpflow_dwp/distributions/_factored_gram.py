"""What all distributions over Gram matrices share: a factor, pushed through bijectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import (
    SingularCongruence,
    TallCholeskyOuterProduct,
    TriangularCongruence,
)
from gpflow_dwp.distributions.generalised_bartlett import fill_trapezoid

__all__ = [
    "FactoredGram",
    "ScaleTril",
    "isserlis",
    "matrix_of_covariances",
    "triangular_congruence",
]


class FactoredGram(checks.CheckedParameters, tfp.distributions.Distribution):
    r"""A Gram matrix G = A T B (A T B)ᵀ, [M, M], of rank R, for a random lower trapezoid T.

    Abstract: a distribution hands in its parts. Samples go from T to G; the density goes from G,
    by the inverses and log-determinants of the bijectors, to T. Where both are wanted, T is at hand
    and G is not factorised. Densities are computed in float64 also where the dtype is float32.

    :param factor: The distribution of T, [..., M, R].
    :param congruence: C → A C Aᵀ.
    :param column_mixing: What multiplies T from the right, T → T B.
    :param parameters: The arguments of the distribution.
    :param name: Name of the operations.
    """

    def __init__(
        self,
        factor: Any,
        congruence: SingularCongruence,
        column_mixing: Any,
        parameters: dict[str, Any],
        name: str,
    ) -> None:
        self._factor = factor
        self._congruence = congruence
        self._column_mixing = column_mixing
        self._size, self._rank = factor.event_shape.as_list()
        self._outer_product = TallCholeskyOuterProduct(rank=self._rank)
        super().__init__(
            dtype=factor.dtype,
            reparameterization_type=tfp.distributions.FULLY_REPARAMETERIZED,
            validate_args=parameters["validate_args"],
            allow_nan_stats=parameters["allow_nan_stats"],
            parameters=parameters,
            name=name,
        )

    @property
    def rank(self) -> int:
        """The rank R of a sampled matrix."""
        return self._rank

    def _requirements(self) -> list[checks.Requirement]:
        return self._congruence._requirements()

    # TFP keeps the results of a bijector's public methods, found by the identity of the input. They
    # are stale once a variable has changed, and constants to a gradient tape opened after. So what
    # follows calls the methods behind them.

    def _sample_control_dependencies(self, value: tf.Tensor) -> list[Any]:
        if not self.validate_args:
            return []
        # A failed factorisation is NaN, for which no comparison holds.
        factor = self._outer_product._inverse(value)
        error = tf.abs(value - self._outer_product._forward(factor))
        largest = tf.reduce_max(tf.abs(value), axis=[-2, -1], keepdims=True)
        tolerance = np.finfo(self.dtype.as_numpy_dtype).eps ** (1 / 3)
        return [
            tf.debugging.assert_equal(
                tf.reduce_all(error <= tolerance * largest),
                True,
                message="The value must be symmetric, positive semi-definite and of rank "
                f"{self._rank}, with a positive definite leading block.",
            )
        ]

    def _event_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self._size, self._size])

    def _event_shape_tensor(self) -> tf.Tensor:
        return tf.constant([self._size, self._size], dtype=tf.int32)

    def _sample_n(self, n: tf.Tensor, seed: Any = None) -> tf.Tensor:
        exact = self._in_double()
        factor = tf.cast(self._factor_at_batch_shape().sample(n, seed=seed), exact.dtype)
        gram = exact._gram(exact._congruence.mix_rows(exact._column_mixing._forward(factor)))
        return tf.cast(gram, self.dtype)

    def _sample_and_log_prob(
        self, sample_shape: tf.Tensor, seed: Any = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        exact, own = self._in_double(), self._factor_at_batch_shape()
        if exact is self:
            factor, log_prob = own.experimental_sample_and_log_prob(sample_shape, seed=seed)
        else:
            factor = tf.cast(own.sample(sample_shape, seed=seed), exact.dtype)
            log_prob = exact._factor.log_prob(factor)
        mixed = exact._column_mixing._forward(factor)
        gram_factor = exact._congruence.mix_rows(mixed)
        log_prob -= exact._column_mixing._forward_log_det_jacobian(factor)
        log_prob -= exact._outer_product._forward_log_det_jacobian(mixed)
        log_prob -= exact._congruence.forward_log_det_jacobian_of_factors(mixed, gram_factor)
        return tf.cast(exact._gram(gram_factor), self.dtype), tf.cast(log_prob, self.dtype)

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        checks.check_event("The value", value, [self._size, self._size], "the event shape")
        exact = self._in_double()
        value = tf.cast(value, exact.dtype)
        # G → C = Λ Λᵀ → Λ → T
        log_det = exact._congruence._inverse_log_det_jacobian(value)
        outer = exact._congruence._inverse(value)
        mixed = exact._outer_product._inverse(outer)
        log_det -= exact._outer_product._forward_log_det_jacobian(mixed)
        log_det -= exact._column_mixing._forward_log_det_jacobian(mixed)
        log_prob = exact._factor.log_prob(exact._column_mixing._inverse(mixed)) + log_det
        return tf.cast(log_prob, self.dtype)

    def _in_double(self) -> FactoredGram:
        """Itself, or its twin in float64: float32's Cholesky factors of Gram matrices fail."""
        if self.dtype == tf.float64:
            return self
        names = self.parameter_properties(dtype=self.dtype)
        wide = {name: tf.cast(getattr(self, name), tf.float64) for name in names}
        return self.copy(**wide, validate_args=False)

    def _default_event_space_bijector(self) -> Any:
        trapezoid = fill_trapezoid(self._size, self._rank)
        return tfp.bijectors.Chain([self._outer_product, trapezoid])

    def _at_batch_shape(self, matrix: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        return tf.broadcast_to(matrix, shape)

    def _gram(self, gram_factor: tf.Tensor) -> tf.Tensor:
        product = tf.matmul(gram_factor, gram_factor, transpose_b=True)
        return 0.5 * (product + tf.linalg.matrix_transpose(product))

    def _factor_at_batch_shape(self) -> Any:
        # Matrices with a larger batch than the factor's need a factor each.
        if self.batch_shape.is_fully_defined() and self.batch_shape == self._factor.batch_shape:
            return self._factor
        return tfp.distributions.BatchBroadcast(self._factor, self.batch_shape_tensor())


class ScaleTril(FactoredGram):
    """A distribution whose A is a Cholesky factor L. Abstract; stands before other bases."""

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor L, [..., M, M]."""
        return self._congruence.row_mixing

    def _requirements(self) -> list[checks.Requirement]:
        return [_scale_tril_requirement(self.scale_tril)]

    def _scale(self) -> tf.Tensor:
        """L Lᵀ, [..., M, M]."""
        return self._gram(self._congruence._matrix())


def triangular_congruence(scale_tril: Any, df: int) -> TriangularCongruence:
    """Make the congruence by a Cholesky factor.

    :param scale_tril: Cholesky factor of the scale, L, a tensor or variable, [..., M, M].
    :param df: Degrees of freedom, ν.
    :raises ValueError: If L is known not to be a Cholesky factor.
    """
    checks.check_requirements([_scale_tril_requirement(scale_tril)])
    return TriangularCongruence(scale_tril, df)


def _scale_tril_requirement(scale_tril: Any) -> checks.Requirement:
    return checks.Requirement(
        "scale_tril",
        scale_tril,
        checks.tril_with_positive_diagonal,
        "finite entries and a positive diagonal",
    )


def isserlis(scale: tf.Tensor) -> tf.Tensor:
    """Return S_ik S_jl + S_il S_jk for all i, j, k, l, [..., M, M, M, M].

    For a column f ~ N(0, S) it is the covariance of f_i f_j and f_k f_l (Isserlis, 1918).

    :param scale: Covariance, S, [..., M, M].
    """
    first = scale[..., :, None, :, None] * scale[..., None, :, None, :]
    return first + tf.linalg.matrix_transpose(first)


def matrix_of_covariances(covariances: tf.Tensor) -> tf.Tensor:
    """Turn the covariances of the entries of a matrix into TFP's form of them.

    :param covariances: Those of G_ij and G_kl, [..., M, M, M, M].
    :return: Those of the entries in row-major order, [..., M², M²].
    """
    shape = tf.shape(covariances)
    entries = covariances.shape[-1] ** 2
    return tf.reshape(covariances, tf.concat([shape[:-4], [entries, entries]], axis=0))
