"""The Wishart distribution with any integer degrees of freedom."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.distributions._bartlett_gram import BartlettGram
from gpflow_dwp.distributions._factored_gram import (
    ScaleTril,
    isserlis,
    matrix_of_covariances,
    triangular_congruence,
)
from gpflow_dwp.distributions.generalised_bartlett import (
    GeneralisedBartlett,
    properties,
)

__all__ = ["SingularWishart"]


class SingularWishart(ScaleTril, BartlettGram):
    r"""The Wishart distribution W(S, ν) of G = F Fᵀ, where the ν columns of F are N(0, S).

    With ν < M a sample is singular, of rank R = min(ν, M). Support: the symmetric positive
    semi-definite matrices of rank R with a positive definite leading R x R block, [M, M]. The
    density, with respect to the entries G_ij with j ≤ min(i, R), is (30) of "An Improved
    Variational Approximate Posterior for the Deep Wishart Process" (Srivastava, 2003):

    .. math:: \log p(G) = \tfrac12 \nu (R - M) \log\pi - \tfrac12 \nu M \log 2
              - \tfrac12 \nu \log|S| - \log\Gamma_R(\tfrac12\nu)
              + \tfrac12 (\nu - M - 1) \log|G_{:R,:R}| - \tfrac12 \mathrm{tr}(S^{-1} G).

    Γ_R is the multivariate gamma function of order R, not M. It is computed as that of L T (L T)ᵀ
    with the Bartlett factor T_jj² ~ Gamma((ν - j + 1)/2, rate ½), T_ij ~ N(0, 1), equation (32).
    Outside the support it is NaN or meaningless. Samples are reparameterised and exactly symmetric.

    :param df: Degrees of freedom, ν.
    :param scale_tril: Cholesky factor L of the scale S, [..., M, M]. What is above its diagonal is
        ignored. Its dtype is that of the distribution.
    :param validate_args: Whether to assert, at run time, the support of values, and what is not
        known of the parameters at construction.
    :param allow_nan_stats: Whether the mode is NaN where there is none. Otherwise that is an error
        when it is asked for.
    :param name: Name of the operations.
    :raises ValueError: If ``df`` is not an integer of at least 1, or ``scale_tril`` not square, or
        known to lack a positive diagonal or to have an entry that is not finite.
    """

    def __init__(
        self,
        df: int,
        scale_tril: Any,
        *,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SingularWishart",
    ) -> None:
        parameters = dict(locals())
        df = checks.check_df(df)
        with tf.name_scope(name) as name:
            (tril,) = checks.convert_parameters(scale_tril=scale_tril)
            size, _ = checks.matrix_shape("scale_tril", tril, square=True)
            congruence = triangular_congruence(tril, df)
            factor = _bartlett(df, size, tril.dtype)
            super().__init__(factor, congruence, tfp.bijectors.Identity(), parameters, name)

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(scale_tril=2)

    def _mean(self) -> tf.Tensor:
        return self.df * self._scale()

    def _variance(self) -> tf.Tensor:
        scale = self._scale()
        diagonal = tf.linalg.diag_part(scale)
        return self.df * (scale**2 + diagonal[..., :, None] * diagonal[..., None, :])

    def _covariance(self) -> tf.Tensor:
        # The ν columns of F are independent.
        return self.df * matrix_of_covariances(isserlis(self._scale()))


def _bartlett(df: int, size: int, dtype: tf.DType) -> GeneralisedBartlett:
    rank = min(df, size)
    return GeneralisedBartlett(
        concentration=tf.constant(0.5 * (df - np.arange(rank)), dtype),
        rate=tf.constant(np.full(rank, 0.5), dtype),
        loc=tf.constant(np.zeros([size, rank]), dtype),
        scale=tf.constant(np.ones([size, rank]), dtype),
    )
