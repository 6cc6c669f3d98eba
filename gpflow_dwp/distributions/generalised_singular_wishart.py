"""The generalised (singular) Wishart distribution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import SingularCongruence
from gpflow_dwp.distributions import _parameters
from gpflow_dwp.distributions._bartlett_gram import GeneralisedGram, check_factor_shapes
from gpflow_dwp.distributions._factored_gram import scale_tril_requirement
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett

__all__ = ["GeneralisedSingularWishart"]


class GeneralisedSingularWishart(GeneralisedGram):
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
    parameters, or GPflow's default.

    :param df: ν, the degrees of freedom.
    :param scale_tril: L, [..., M, M]. What is above its diagonal is ignored.
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
        parameters = dict(locals())
        df = checks.check_df(df)
        with tf.name_scope(name) as name:
            names = ("scale_tril", "concentration", "rate", "loc", "scale")
            tensors = dict(
                zip(
                    names,
                    checks.convert_parameters(**{key: parameters[key] for key in names}),
                    strict=True,
                )
            )
            check_factor_shapes(df, "scale_tril", tensors)
            self._scale_tril = tensors["scale_tril"]
            checks.check_requirements([scale_tril_requirement(self._scale_tril)])
            factor = GeneralisedBartlett(
                *(tensors[key] for key in _parameters.BARTLETT_EVENT_NDIMS),
                validate_args=validate_args,
            )
            super().__init__(
                factor,
                SingularCongruence(self._scale_tril, df, is_triangular=True),
                None,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                parameters=parameters,
                name=name,
            )

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor L, [..., M, M]."""
        return self._scale_tril

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return {
            "scale_tril": _parameters.tril_property(dtype),
            **_parameters.gram_factor_properties(dtype),
        }

    def _requirements(self) -> list[checks.Requirement]:
        return [scale_tril_requirement(self._scale_tril)]
