"""Wishart distributions: singular ones, and their generalisations, which are posteriors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpflow_dwp.distributions._factored_gram import FactoredGram, gram
from gpflow_dwp.distributions._matrix_distribution import properties
from gpflow_dwp.distributions.generalised_bartlett import BARTLETT_EVENT_NDIMS

__all__ = [
    "ABGeneralisedSingularWishart",
    "AGeneralisedSingularWishart",
    "GeneralisedSingularWishart",
    "SingularWishart",
]


class SingularWishart(FactoredGram):
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

    :param df: Degrees of freedom, ν: an integer, or any real number above M - 1.
    :param scale_tril: Cholesky factor L of the scale S, [..., M, M]. What is above its diagonal is
        ignored. Its dtype is that of the distribution.
    :param validate_args: Whether the scale is checked at each use, too.
    :raises ValueError: If ``df`` is not such a number, or ``scale_tril`` not square, or
        known to lack a positive diagonal or to have an entry that is not finite.
    """

    def __init__(
        self,
        df: float,
        scale_tril: Any,
        *,
        validate_args: bool = False,
        name: str = "SingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, scale_tril=2)

    def _mode(self) -> tf.Tensor:
        if self.df < self._size + 1:
            raise NotImplementedError(f"There is a mode from df = M + 1 on, got df = {self.df}.")
        return (self.df - self._size - 1.0) * gram(self._congruence._matrix())

    def _variance(self) -> tf.Tensor:
        scale = gram(self._congruence._matrix())
        diagonal = tf.linalg.diag_part(scale)
        return self.df * (scale**2 + diagonal[..., :, None] * diagonal[..., None, :])


class GeneralisedSingularWishart(FactoredGram):
    r"""The generalised singular Wishart distribution GW of G = L T (L T)ᵀ.

    T is a generalised Bartlett factor, and L lower triangular with a positive diagonal. By the
    log-determinants of Λ = L T and of G = Λ Λᵀ the density is (12) of "An Improved Variational
    Approximate Posterior for the Deep Wishart Process",

    .. math:: p(G) = \prod_{j=1}^M L_{jj}^{-\min(j,\nu)} \prod_{j=1}^R
              \frac{\mathrm{Gamma}(T_{jj}^2; \alpha_j, \beta_j)}{T_{jj}^{M-j} L_{jj}^{M-j+1}}
              \prod_{i=j+1}^M N(T_{ij}; \mu_{ij}, \sigma_{ij}^2),

    with R = min(ν, M). With α_j = (ν - j + 1)/2, β_j = ½, μ = 0 and σ = 1 it is the singular
    Wishart W(L Lᵀ, ν).

    Support: the symmetric positive semi-definite matrices of rank R = min(ν, M) with a positive
    definite leading R x R block, [M, M]; outside of it the density is NaN or meaningless. The
    density is with respect to the entries G_ij with j ≤ min(i, R). Samples are reparameterised and
    exactly symmetric. Batch dimensions broadcast. The dtype is that of the tensors among the
    parameters, or GPflow's default. In float32, densities are computed in float64; a nearly
    singular matrix that was rounded to float32 may not be definite, and its density NaN.

    Arguments but these are those of T: see :class:`GeneralisedBartlett`.

    :param df: Degrees of freedom, ν: an integer, or any real number above M - 1.
    :param scale_tril: Cholesky factor of the scale, L, [..., M, M]. What is above its diagonal is
        ignored.
    :param validate_args: Whether parameters are checked at each use, too.
    :raises ValueError: If ``df`` is not such a number, the shapes do not fit each other
        and ``df``, or a value is known not to be admissible.
    """

    def __init__(
        self,
        df: float,
        scale_tril: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        name: str = "GeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, scale_tril=2, **BARTLETT_EVENT_NDIMS)


class AGeneralisedSingularWishart(FactoredGram):
    r"""The A-generalised singular Wishart distribution A-GW of G = A T (A T)ᵀ.

    T is a generalised Bartlett factor, and A any invertible matrix. By the log-determinants of
    C = T Tᵀ and of G = A C Aᵀ the density is (13) of "An Improved Variational Approximate Posterior
    for the Deep Wishart Process", which writes N for M,

    .. math:: p(G) = \frac{|G_{:R,:R}|^{(\nu-M-1)/2}}{|\det A|^\nu |C_{:R,:R}|^{(\nu-M-1)/2}}
              \prod_{j=1}^R \frac{\mathrm{Gamma}(T_{jj}^2; \alpha_j, \beta_j)}{T_{jj}^{M-j}}
              \prod_{i=j+1}^M N(T_{ij}; \mu_{ij}, \sigma_{ij}^2),

    with R = min(ν, M). The family is closed under congruence: R G Rᵀ, with R now an invertible
    matrix, has row mixing R A. With A lower triangular it is the generalised singular Wishart.

    What :class:`GeneralisedSingularWishart` says of the support, of samples, of ``df`` and of the
    arguments after A holds here too.

    :param row_mixing: What multiplies the factor from the left, A, [..., M, M].
    """

    def __init__(
        self,
        df: float,
        row_mixing: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        name: str = "AGeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, row_mixing=2, **BARTLETT_EVENT_NDIMS)


class ABGeneralisedSingularWishart(FactoredGram):
    r"""The AB-generalised singular Wishart distribution AB-GW of G = A T B (A T B)ᵀ.

    T is a generalised Bartlett factor, A any invertible matrix, and B lower triangular with a
    positive diagonal. By the log-determinants of Λ = T B, C = Λ Λᵀ and G = A C Aᵀ the density is
    (14) of "An Improved Variational Approximate Posterior for the Deep Wishart Process", which
    writes N for M,

    .. math:: p(G) = \frac{|G_{:R,:R}|^{(\nu-M-1)/2}}{|\det A|^\nu |C_{:R,:R}|^{(\nu-M-1)/2}}
              \prod_{j=1}^R \frac{\mathrm{Gamma}(T_{jj}^2; \alpha_j, \beta_j)}
              {T_{jj}^{M-j} B_{jj}^{2(M-j+1)}}
              \prod_{i=j+1}^M N(T_{ij}; \mu_{ij}, \sigma_{ij}^2),

    with R = min(ν, M). With B = I it is the A-generalised singular Wishart.

    What :class:`GeneralisedSingularWishart` says of the support, of samples, of ``df`` and of the
    arguments after B holds here too.

    :param row_mixing: What multiplies the factor from the left, A, [..., M, M].
    :param column_mixing_tril: What multiplies the factor from the right, B, [..., R, R]. What is
        above its diagonal is ignored.
    """

    def __init__(
        self,
        df: float,
        row_mixing: Any,
        column_mixing_tril: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        name: str = "ABGeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(dtype, row_mixing=2, column_mixing_tril=2, **BARTLETT_EVENT_NDIMS)
