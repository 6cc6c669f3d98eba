"""The inverse Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions._factored_gram import (
    ScaleTril,
    isserlis,
    matrix_of_covariances,
    triangular_congruence,
)
from gpflow_dwp.distributions.generalised_bartlett import (
    GeneralisedBartlett,
    properties,
    where_defined,
)

__all__ = ["InverseWishart"]


class InverseWishart(ScaleTril):
    r"""The inverse Wishart distribution W⁻¹(Ψ, n): that of the inverse of a W(Ψ⁻¹, n) matrix.

    Ψ is the scale matrix as ``scipy.stats.invwishart`` has it, not divided or multiplied by n:

    .. math:: \log p(G) = \tfrac12 n \log|\Psi| - \tfrac12 n M \log 2 - \log\Gamma_M(\tfrac12 n)
              - \tfrac12 (n + M + 1) \log|G| - \tfrac12 \mathrm{tr}(\Psi G^{-1}).

    With Ψ = L Lᵀ a sample is G = (L V⁻¹)(L V⁻¹)ᵀ, where L V⁻¹ is its Cholesky factor and V is lower
    triangular with independent entries: V_jj² ~ Gamma((n - M + j)/2, rate ½), V_ij ~ N(0, 1).
    (Vᵀ V is a standard Wishart matrix: this is Bartlett's decomposition with rows and columns in
    the opposite order.) The law of V_jj depends on n and M only through n - M, and the leading
    block of V⁻¹ is the inverse of that of V. So the leading m x m block of G is
    W⁻¹(Ψ_{:m,:m}, n - M + m).

    Support: the symmetric positive definite matrices, [M, M]; outside of it the density is NaN or
    meaningless. Samples are reparameterised, with respect to both parameters, and exactly
    symmetric. Batch dimensions broadcast. The dtype is that of the tensors among the parameters, or
    GPflow's default.

    :param df: Degrees of freedom, n, any number above M - 1, [...].
    :param scale_tril: Cholesky factor L of the scale Ψ, [..., M, M]. What is above its diagonal is
        ignored.
    :param validate_args: Whether to assert, at run time, the support of values, and what is not
        known of the parameters at construction.
    :param allow_nan_stats: Whether the mean is NaN where n ≤ M + 1, and the variance where
        n ≤ M + 3. Otherwise that is an error when they are asked for.
    :param name: Name of the operations.
    :raises ValueError: If ``df`` is known not to be above M - 1 or not to be finite,
        ``scale_tril`` is not square, or known to lack a positive diagonal or to have an entry that
        is not finite, or their batch shapes do not broadcast.
    """

    def __init__(
        self,
        df: Any,
        scale_tril: Any,
        *,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseWishart",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._df, tril = checks.convert_parameters(df=df, scale_tril=scale_tril)
            size, _ = checks.matrix_shape("scale_tril", tril, square=True)
            checks.check_requirements([_df_requirement(self._df, size)])
            congruence = triangular_congruence(tril, size)
            self._precision_factor = _reversed_bartlett(self._df, size)
            concentration = self._precision_factor.concentration
            checks.check_batch_shapes(
                {"df": 1, "scale_tril": 2}, {"df": concentration, "scale_tril": tril}
            )
            factor = tfp.distributions.TransformedDistribution(
                self._precision_factor, tfp.bijectors.MatrixInverseTriL()
            )
            super().__init__(factor, congruence, tfp.bijectors.Identity(), parameters, name)

    @property
    def df(self) -> Any:
        """The degrees of freedom n, [...]."""
        return self._df

    @property
    def precision_factor(self) -> GeneralisedBartlett:
        """The distribution of V, [M, M]: G⁻¹ = L⁻ᵀ Vᵀ V L⁻¹."""
        return self._precision_factor

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(df=0, scale_tril=2)

    def _requirements(self) -> list[checks.Requirement]:
        return [_df_requirement(self._df, self._size), *super()._requirements()]

    def _mean(self) -> tf.Tensor:
        return self._at_batch_shape(self._scale() / self._df_beyond(self._size + 1, "mean"))

    def _mode(self) -> tf.Tensor:
        df = tf.convert_to_tensor(self._df)[..., None, None]
        return self._at_batch_shape(self._scale() / (df + self._size + 1.0))

    def _variance(self) -> tf.Tensor:
        # ((n - M + 1) Ψ_ij² + (n - M - 1) Ψ_ii Ψ_jj) / ((n - M) (n - M - 1)² (n - M - 3))
        excess = self._df_beyond(self._size + 3, "variance")
        scale = self._scale()
        diagonal = tf.linalg.diag_part(scale)
        products = diagonal[..., :, None] * diagonal[..., None, :]
        numerator = (excess + 4.0) * scale**2 + (excess + 2.0) * products
        return self._at_batch_shape(numerator / ((excess + 3.0) * (excess + 2.0) ** 2 * excess))

    def _covariance(self) -> tf.Tensor:
        # (2 Ψ_ij Ψ_kl + (n - M - 1) (Ψ_ik Ψ_jl + Ψ_il Ψ_jk)) over the same as the variance
        excess = self._df_beyond(self._size + 3, "covariance")[..., None, None]
        scale = self._scale()
        numerator = 2.0 * scale[..., :, :, None, None] * scale[..., None, None, :, :]
        numerator += (excess + 2.0) * isserlis(scale)
        covariances = numerator / ((excess + 3.0) * (excess + 2.0) ** 2 * excess)
        size = 2 * [self._size**2]
        shape = tf.concat([self.batch_shape_tensor(), size], axis=0)
        return tf.broadcast_to(matrix_of_covariances(covariances), shape)

    def _entropy(self) -> tf.Tensor:
        # That of V, and the expected logarithms of how V → V⁻¹ → V⁻¹ V⁻ᵀ → G change the volume:
        # Σ_j [-(M + 1) log V_jj], Σ_j [log 2 - (M - j + 1) log V_jj] and Σ_j (M + 1) log L_jj.
        log_diagonal = 0.5 * (
            tf.math.digamma(tf.convert_to_tensor(self._precision_factor.concentration))
            + math.log(2.0)
        )
        size = self._size
        exponents = tf.constant(2 * size + 1 - np.arange(size), self.dtype)
        log_scale = tf.math.log(tf.linalg.diag_part(self._congruence._matrix()))
        return (
            self._precision_factor.entropy()
            + size * math.log(2.0)
            - tf.reduce_sum(exponents * log_diagonal, axis=-1)
            + (size + 1.0) * tf.reduce_sum(log_scale, axis=-1)
        )

    def _df_beyond(self, minimum: int, statistic: str) -> tf.Tensor:
        """n less what it must exceed, [..., 1, 1]; NaN or an error where it does not."""
        excess = tf.convert_to_tensor(self._df) - minimum
        excess = where_defined(
            excess,
            excess > 0.0,
            allow_nan=self.allow_nan_stats,
            message=f"The {statistic} is defined where df > {minimum} only.",
        )
        return excess[..., None, None]


def _df_requirement(df: Any, size: int) -> checks.Requirement:
    expected = f"finite values above M - 1 = {size - 1}"
    return checks.Requirement("df", df, lambda df: checks.positive(df - (size - 1)), expected)


class _Concentration:
    """From n to (n - M + j)/2 for j = 1..M; not a local function, which could not be pickled."""

    __name__ = "concentration"

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, df: Any) -> tf.Tensor:
        df = tf.convert_to_tensor(df)
        return 0.5 * df[..., None] + tf.constant(
            0.5 * (np.arange(self._size) + 1.0 - self._size), df.dtype
        )


def _reversed_bartlett(df: Any, size: int) -> GeneralisedBartlett:
    dtype = tf.as_dtype(df.dtype)
    # Read at each use, as df may be a variable.
    concentration = tfp.util.DeferredTensor(
        df, _Concentration(size), shape=tf.TensorShape(df.shape).concatenate([size])
    )
    return GeneralisedBartlett(
        concentration=concentration,
        rate=tf.constant(np.full(size, 0.5), dtype),
        loc=tf.constant(np.zeros([size, size]), dtype),
        scale=tf.constant(np.ones([size, size]), dtype),
    )
