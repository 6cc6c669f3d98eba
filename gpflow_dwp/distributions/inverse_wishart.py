"""The inverse Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions._factored_gram import bartlett, gram, positive_definite
from gpflow_dwp.distributions._matrix_distribution import MatrixDistribution, properties
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett

__all__ = ["InverseWishart"]


class InverseWishart(MatrixDistribution):
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
    symmetric. The mean is NaN where n ≤ M + 1, the variance where n ≤ M + 3; in float32, densities
    are computed in float64. Batch dimensions broadcast. The dtype is that of the tensors among the
    parameters, or GPflow's default.

    :param df: Degrees of freedom, n, any number above M - 1, [...].
    :param scale_tril: Cholesky factor L of the scale Ψ, [..., M, M]. What is above its diagonal is
        ignored.
    :param validate_args: Whether the scale is checked at each use, too.
    :raises ValueError: If ``df`` is known not to be above M - 1 or not to be finite, or
        ``scale_tril`` is not square, or known to lack a positive diagonal or to have an entry that
        is not finite; when it is sampled, if ``df`` is known to be so near to M - 1, within 0.04 or
        in float32 0.32, that samples are beyond the dtype.
    """

    def __init__(
        self, df: Any, scale_tril: Any, *, validate_args: bool = False, name: str = "InverseWishart"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self.df, self.scale_tril = checks.convert_parameters(df=df, scale_tril=scale_tril)
            M, _ = checks.matrix_shape("scale_tril", self.scale_tril, square=True)
            checks.check_tril("scale_tril", self.scale_tril)
            checks.check_values(
                "df",
                self.df,
                lambda df: checks.positive(df - (M - 1)),
                f"finite values above M - 1 = {M - 1}",
            )
            self._size = M
            super().__init__((M, M), self.scale_tril.dtype, parameters, name)

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, df=0, scale_tril=2)

    @property
    def precision_factor(self) -> GeneralisedBartlett:
        """The distribution of V, [M, M]: G⁻¹ = L⁻ᵀ Vᵀ V L⁻¹."""
        return bartlett(self._alpha(), self._size)

    def _alpha(self) -> tf.Tensor:
        """α_j = (n - M + j)/2, that of V_jj², [..., M]."""
        n = tf.convert_to_tensor(self.df)[..., None]
        return 0.5 * n + tf.constant(0.5 * (np.arange(self._size) + 1.0 - self._size), n.dtype)

    def _sample_n(self, n: tf.Tensor, seed: Any = None) -> tf.Tensor:
        # G is about z^-1, where z of Gamma(α) is below t with probability t^α: at most 1e-6 here.
        dtype = self.dtype.as_numpy_dtype
        least = self._size - 1 + round(28.0 / -math.log(np.finfo(dtype).tiny), 2)
        checks.check_values(
            "df",
            self.df,
            lambda df: df >= dtype(least),
            f"values of at least {least:g} for samples, which are else beyond {self.dtype.name}",
        )
        batch_shape = self.batch_shape_tensor()
        each = tfp.distributions.BatchBroadcast(self.precision_factor, batch_shape)
        V_inverse = tfp.bijectors.MatrixInverseTriL().forward(each.sample(n, seed=seed))
        return gram(tf.matmul(self._tril(), V_inverse))

    def _log_prob(self, value: tf.Tensor) -> tf.Tensor:
        checks.check_event("The value", value, [self._size, self._size], "the event shape")
        M = self._size
        n, L, alpha, G = (
            tf.cast(each, tf.float64) for each in (self.df, self._tril(), self._alpha(), value)
        )
        root = tf.linalg.cholesky(G)
        half_log_det_Psi, half_log_det_G = (
            tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tril)), axis=-1) for tril in (L, root)
        )
        trace = tf.reduce_sum(tf.square(tf.linalg.triangular_solve(root, L)), axis=[-2, -1])
        log_gamma = 0.25 * M * (M - 1) * math.log(math.pi) + tf.reduce_sum(
            tf.math.lgamma(alpha), axis=-1
        )
        log_prob = n * (half_log_det_Psi - 0.5 * M * math.log(2.0)) - log_gamma
        log_prob -= (n + M + 1.0) * half_log_det_G + 0.5 * trace
        return tf.cast(log_prob, self.dtype)

    def _mode(self) -> tf.Tensor:
        total = tf.convert_to_tensor(self.df) + (self._size + 1.0)
        return gram(self._tril()) / total[..., None, None]

    def _default_event_space_bijector(self) -> tfp.bijectors.Bijector:
        return positive_definite(self.dtype)

    def _mean(self) -> tf.Tensor:
        Psi, excess = self._scale_and_excess(self._size + 1)
        return Psi / excess

    def _variance(self) -> tf.Tensor:
        # ((n - M + 1) Ψ_ij² + (n - M - 1) Ψ_ii Ψ_jj) / ((n - M) (n - M - 1)² (n - M - 3))
        Psi, excess = self._scale_and_excess(self._size + 3)
        diagonal = tf.linalg.diag_part(Psi)
        products = diagonal[..., :, None] * diagonal[..., None, :]
        numerator = (excess + 4.0) * Psi**2 + (excess + 2.0) * products
        return numerator / ((excess + 3.0) * (excess + 2.0) ** 2 * excess)

    def _scale_and_excess(self, minimum: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Ψ, and n less what it must exceed, [..., 1, 1]; NaN where it does not."""
        excess = tf.convert_to_tensor(self.df)[..., None, None] - float(minimum)
        return gram(self._tril()), tf.where(excess > 0.0, excess, np.nan)

    def _tril(self) -> tf.Tensor:
        return tf.linalg.band_part(tf.convert_to_tensor(self.scale_tril), -1, 0)
