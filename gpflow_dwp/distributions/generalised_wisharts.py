"""The generalised (singular) Wishart distributions GW, A-GW and AB-GW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import RightTriangularProduct, SingularCongruence
from gpflow_dwp.distributions._bartlett_gram import BartlettGram
from gpflow_dwp.distributions._factored_gram import ScaleTril, triangular_congruence
from gpflow_dwp.distributions.generalised_bartlett import (
    BARTLETT_EVENT_NDIMS,
    GeneralisedBartlett,
    properties,
)

__all__ = [
    "ABGeneralisedSingularWishart",
    "AGeneralisedSingularWishart",
    "GeneralisedSingularWishart",
]


class _GeneralisedWishart(BartlettGram):
    """All three: G = A T B (A T B)ᵀ, for a factor T with parameters of its own. Abstract.

    The parameters of A, of B where it is not the identity, and of T, in this order, are those that
    a class describes to TFP.

    :param parameters: The arguments of the distribution.
    """

    _make_congruence: Callable[[Any, int], SingularCongruence] = staticmethod(SingularCongruence)
    _make_column_mixing = staticmethod(tfp.bijectors.Identity)

    def __init__(self, parameters: dict[str, Any]) -> None:
        df = checks.check_df(parameters["df"])
        described = self._parameter_properties(tf.float64)
        with tf.name_scope(parameters["name"]) as name:
            values = checks.convert_parameters(**{key: parameters[key] for key in described})
            tensors = dict(zip(described, values, strict=True))
            _check_shapes(df, {key: p.event_ndims for key, p in described.items()}, tensors)
            bartlett = {key: tensors.pop(key) for key in BARTLETT_EVENT_NDIMS}
            rows, *columns = tensors.values()
            congruence = self._make_congruence(rows, df)
            column_mixing = self._make_column_mixing(*columns)
            factor = GeneralisedBartlett(**bartlett, validate_args=parameters["validate_args"])
            super().__init__(factor, congruence, column_mixing, parameters, name)

    @property
    def concentration(self) -> Any:
        """The concentrations α of the factor, [..., R]."""
        return self._factor.concentration

    @property
    def rate(self) -> Any:
        """The rates β of the factor, [..., R]."""
        return self._factor.rate

    @property
    def loc(self) -> Any:
        """The means μ of the factor, [..., M, R]."""
        return self._factor.loc

    @property
    def scale(self) -> Any:
        """The standard deviations σ of the factor, [..., M, R]."""
        return self._factor.scale


class GeneralisedSingularWishart(ScaleTril, _GeneralisedWishart):
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

    :param df: Degrees of freedom, ν.
    :param scale_tril: Cholesky factor of the scale, L, [..., M, M]. What is above its diagonal is
        ignored.
    :param concentration: Shapes of the squared diagonal's Gamma distributions, α, [..., R].
    :param rate: Rates of the squared diagonal's Gamma distributions, β, [..., R].
    :param loc: Means below the diagonal, μ, [..., M, R]. Entries on and above the diagonal are
        ignored.
    :param scale: Standard deviations below the diagonal, σ, [..., M, R]. Entries on and above the
        diagonal are ignored.
    :param validate_args: Whether to assert, at run time, the support of values, and what is not
        known of the parameters at construction.
    :param allow_nan_stats: Whether the mode is NaN where there is none. Otherwise that is an error
        when it is asked for.
    :param name: Name of the operations.
    :raises ValueError: If ``df`` is not an integer of at least 1, the shapes do not fit each other
        and ``df``, or a value is known not to be admissible.
    """

    _make_congruence = staticmethod(triangular_congruence)

    def __init__(
        self,
        df: int,
        scale_tril: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(scale_tril=2, **BARTLETT_EVENT_NDIMS)


class AGeneralisedSingularWishart(_GeneralisedWishart):
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
        df: int,
        row_mixing: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "AGeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @property
    def row_mixing(self) -> Any:
        """The matrix A, [..., M, M]."""
        return self._congruence.row_mixing

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(row_mixing=2, **BARTLETT_EVENT_NDIMS)


class ABGeneralisedSingularWishart(_GeneralisedWishart):
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

    _make_column_mixing = staticmethod(RightTriangularProduct)

    def __init__(
        self,
        df: int,
        row_mixing: Any,
        column_mixing_tril: Any,
        concentration: Any,
        rate: Any,
        loc: Any,
        scale: Any,
        *,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ABGeneralisedSingularWishart",
    ) -> None:
        super().__init__(dict(locals()))

    @property
    def row_mixing(self) -> Any:
        """The matrix A, [..., M, M]."""
        return self._congruence.row_mixing

    @property
    def column_mixing_tril(self) -> Any:
        """The matrix B, [..., R, R]."""
        return self._column_mixing.column_mixing_tril

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return properties(row_mixing=2, column_mixing_tril=2, **BARTLETT_EVENT_NDIMS)

    def _requirements(self) -> list[checks.Requirement]:
        return super()._requirements() + self._column_mixing._requirements()


def _check_shapes(df: int, event_ndims: Mapping[str, int], parameters: Mapping[str, Any]) -> None:
    """Check that all fit each other: those of A, [..., M, M], of B if there is one, and of T."""
    name, first = next(iter(parameters.items()))
    size, _ = checks.matrix_shape(name, first, square=True)
    rank = min(df, size)
    expected = {
        "column_mixing_tril": [rank, rank],
        "concentration": [rank],
        "rate": [rank],
        "loc": [size, rank],
        "scale": [size, rank],
    }
    why = f"M = {size}, R = min(df, M) = {rank} for df = {df}"
    for name in list(parameters)[1:]:
        checks.check_event(name, parameters[name], expected[name], why)
    checks.check_batch_shapes(event_ndims, parameters)
