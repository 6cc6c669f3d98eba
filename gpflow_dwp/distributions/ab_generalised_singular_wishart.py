"""The AB-generalised (singular) Wishart distribution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpflow_dwp import parameter_checks as checks
from gpflow_dwp.bijectors import RightTriangularProduct, SingularCongruence
from gpflow_dwp.distributions import _parameters
from gpflow_dwp.distributions._bartlett_gram import GeneralisedGram, check_factor_shapes
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett

__all__ = ["ABGeneralisedSingularWishart"]


class ABGeneralisedSingularWishart(GeneralisedGram):
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

    Support: the symmetric positive semi-definite matrices of rank R = min(ν, M) with a positive
    definite leading R x R block, [M, M]; outside of it the density is NaN or meaningless. The
    density is with respect to the entries G_ij with j ≤ min(i, R). Samples are reparameterised and
    exactly symmetric. Batch dimensions broadcast. The dtype is that of the tensors among the
    parameters, or GPflow's default.

    :param df: ν, the degrees of freedom.
    :param row_mixing: A, [..., M, M].
    :param column_mixing_tril: B, [..., R, R]. What is above its diagonal is ignored.
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
        parameters = dict(locals())
        df = checks.check_df(df)
        with tf.name_scope(name) as name:
            names = ("row_mixing", "column_mixing_tril", "concentration", "rate", "loc", "scale")
            tensors = dict(
                zip(
                    names,
                    checks.convert_parameters(**{key: parameters[key] for key in names}),
                    strict=True,
                )
            )
            self._column_mixing_tril = tensors.pop("column_mixing_tril")
            check_factor_shapes(df, "row_mixing", tensors, self._column_mixing_tril)
            factor = GeneralisedBartlett(
                *(tensors[key] for key in _parameters.BARTLETT_EVENT_NDIMS),
                validate_args=validate_args,
            )
            super().__init__(
                factor,
                SingularCongruence(tensors["row_mixing"], df),
                RightTriangularProduct(self._column_mixing_tril),
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                parameters=parameters,
                name=name,
            )

    @property
    def row_mixing(self) -> Any:
        """The matrix A, [..., M, M]."""
        return self._congruence.row_mixing

    @property
    def column_mixing_tril(self) -> Any:
        """The matrix B, [..., R, R]."""
        return self._column_mixing_tril

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return {
            "row_mixing": _parameters.matrix_property(),
            "column_mixing_tril": _parameters.tril_property(dtype, _parameters.shape_depends_on_df),
            **_parameters.gram_factor_properties(dtype),
        }
