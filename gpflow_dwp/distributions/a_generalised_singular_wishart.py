"""The A-generalised (singular) Wishart distribution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import SingularCongruence
from gpflow_dwp.distributions import _parameters
from gpflow_dwp.distributions._bartlett_gram import GeneralisedGram, check_factor_shapes
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett

__all__ = ["AGeneralisedSingularWishart"]


class AGeneralisedSingularWishart(GeneralisedGram):
    r"""The A-generalised singular Wishart distribution A-GW of G = A T (A T)ᵀ.

    T is a generalised Bartlett factor, and A any invertible matrix. By the log-determinants of
    C = T Tᵀ and of G = A C Aᵀ the density is (13) of "An Improved Variational Approximate Posterior
    for the Deep Wishart Process", which writes N for M,

    .. math:: p(G) = \frac{|G_{:R,:R}|^{(\nu-M-1)/2}}{|\det A|^\nu |C_{:R,:R}|^{(\nu-M-1)/2}}
              \prod_{j=1}^R \frac{\mathrm{Gamma}(T_{jj}^2; \alpha_j, \beta_j)}{T_{jj}^{M-j}}
              \prod_{i=j+1}^M N(T_{ij}; \mu_{ij}, \sigma_{ij}^2),

    with R = min(ν, M). The family is closed under congruence: R G Rᵀ, with R now an invertible
    matrix, has row mixing R A. With A lower triangular it is the generalised singular Wishart.

    Support: the symmetric positive semi-definite matrices of rank R = min(ν, M) with a positive
    definite leading R x R block, [M, M]; outside of it the density is NaN or meaningless. The
    density is with respect to the entries G_ij with j ≤ min(i, R). Samples are reparameterised and
    exactly symmetric. Batch dimensions broadcast. The dtype is that of the tensors among the
    parameters, or GPflow's default.

    :param df: ν, the degrees of freedom.
    :param row_mixing: A, [..., M, M].
    :param concentration: α, [..., R].
    :param rate: β, [..., R].
    :param loc: μ, [..., M, R]. Entries on and above the diagonal are ignored.
    :param scale: σ, [..., M, R]. Entries on and above the diagonal are ignored.
    :param validate_args: Whether to assert, at run time, the support of values, and what is not
        known of the parameters at construction.
    :param allow_nan_stats: Whether the mode is NaN where there is none. Otherwise that is an error
        when it is asked for.
    :param name: Name of the operations.
    :raises ValueError: If ``df`` is not an integer of at least 1, the shapes do not fit each other
        and ``df``, or a value is known not to be admissible.
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
        parameters = dict(locals())
        df = checks.check_df(df)
        with tf.name_scope(name) as name:
            names = ("row_mixing", "concentration", "rate", "loc", "scale")
            tensors = dict(
                zip(
                    names,
                    checks.convert_parameters(**{key: parameters[key] for key in names}),
                    strict=True,
                )
            )
            check_factor_shapes(df, "row_mixing", tensors)
            factor = GeneralisedBartlett(
                *(tensors[key] for key in _parameters.BARTLETT_EVENT_NDIMS),
                validate_args=validate_args,
            )
            super().__init__(
                factor,
                SingularCongruence(tensors["row_mixing"], df),
                None,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                parameters=parameters,
                name=name,
            )

    @property
    def row_mixing(self) -> Any:
        """The matrix A, [..., M, M]."""
        return self._congruence.row_mixing

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return {
            "row_mixing": _parameters.matrix_property(),
            **_parameters.gram_factor_properties(dtype),
        }
