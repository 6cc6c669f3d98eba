"""The Wishart distribution with any degrees of freedom."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpflow_dwp.distributions._factored_gram import FactoredGram, gram
from gpflow_dwp.distributions._matrix_distribution import properties

__all__ = ["SingularWishart"]


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
    :param name: Name of the operations.
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

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor L, [..., M, M]."""
        return self._congruence.row_mixing

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
