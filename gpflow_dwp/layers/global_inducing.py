"""The Gaussian output layer: a GP with a global-inducing posterior."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, LinearCoregionalization, SeparateIndependent

from gpflow_dwp.base import Array
from gpflow_dwp.bijectors import ColumnScaledTril
from gpflow_dwp.layers.base import Description, GaussianPosterior, OutputLayer
from gpflow_dwp.linalg import pseudo_target_posterior
from gpflow_dwp.papers import GLOBAL_INDUCING_POINTS
from gpflow_dwp.validation import check_integers, check_matrix, check_positive

__all__ = ["GlobalInducingGPLayer", "as_inducing_points", "pseudo_target_parameters"]


class GlobalInducingGPLayer(OutputLayer):
    r"""A Gaussian process layer whose posterior comes from pseudo-targets at the inducing points.

    For each output column, given the covariance K of the inducing points,

    .. math:: q(u \mid K) \propto \mathcal N(u; 0, K)\, \mathcal N(v; u, \Lambda^{-1}),
              \quad \Lambda = L L^T

    (Ober and Aitchison, "Global inducing point variational posteriors for Bayesian neural networks
    and deep Gaussian processes", 2021, equation 9). Everything that is needed follows from
    Φ = (K + Λ⁻¹)⁻¹, which :func:`gpflow_dwp.linalg.pseudo_target_posterior` computes without
    factorising K or Λ; Λ becomes nearly singular in training. With a = Φ v,

    .. math:: \mathrm{KL}[q(u) \| p(u)]
              = \tfrac12 \{\log|I + K \Lambda| - \operatorname{tr}(\Phi K) + a^T K a\}.

    Functions have kernels of their own by a ``SeparateIndependent``. A ``LinearCoregionalization``
    mixes L such functions g, f = W g, so that outputs are correlated: the covariance between f_p(x)
    and f_q(x') is Σ_l W_pl W_ql k_l(x, x') (Alvarez, Rosasco and Lawrence, "Kernels for
    vector-valued functions", 2012, section 4.2).

    :param kernel: GPflow kernel that is applied to what the layer below hands on; or one for each
        function.
    :param num_outputs: Number of outputs, Q.
    :param pseudo_targets: Starting values of v, [M, Q], or [M, L] of mixed functions.
    :param precision: Starting value of Λ: a positive number times the identity.
    :param mean_function: See :class:`OutputLayer`.
    :param has_own_precisions: Whether each of several functions with kernels of their own has a Λ,
        [L, M, M] in all: observations do not tell as much of one as of another.
    :raises ValueError: If an argument is not as said here.
    """

    takes_kernels: ClassVar[tuple[type, ...]] = (SeparateIndependent, LinearCoregionalization)

    papers: ClassVar[tuple[str, ...]] = (GLOBAL_INDUCING_POINTS,)

    def __init__(
        self,
        kernel: Kernel,
        num_outputs: int,
        *,
        pseudo_targets: Array | tf.Tensor,
        precision: float = np.exp(-4.0),
        mean_function: MeanFunction | None = None,
        has_own_precisions: bool = False,
    ) -> None:
        check_integers(num_outputs=num_outputs)
        is_mixture = isinstance(kernel, LinearCoregionalization)
        rows, num_functions = kernel.W.shape if is_mixture else (num_outputs, num_outputs)
        if rows != num_outputs:
            raise ValueError(f"kernel must have a W of {num_outputs} rows, got {rows}.")
        pseudo_targets = check_matrix("pseudo_targets", pseudo_targets)
        if pseudo_targets.shape[1] != num_functions:
            raise ValueError(
                f"pseudo_targets must have shape [num_inducing, {num_functions}], got "
                f"{list(pseudo_targets.shape)}."
            )
        super().__init__(kernel, len(pseudo_targets), mean_function)
        if has_own_precisions and not isinstance(kernel, self.takes_kernels):
            name = type(kernel).__name__
            raise ValueError(f"has_own_precisions needs a kernel for each function, got a {name}.")
        self._check_number_of_kernels(num_functions)
        self.mixing = kernel.W if is_mixture else None
        self.num_outputs, self.has_own_precisions = num_outputs, has_own_precisions
        self.pseudo_targets, self.precision_tril = pseudo_target_parameters(
            pseudo_targets, precision, len(self.kernels) if has_own_precisions else None
        )

    def describe(self) -> Description:
        return Description(
            f"functions [{self.num_inducing}, {self.num_outputs}]", "Gaussian, global inducing"
        )

    @inherit_check_shapes
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianPosterior:
        tril, own = (
            tf.cast(each, covariance.dtype) for each in (self.precision_tril, self.pseudo_targets)
        )

        def infer(covariance: tf.Tensor, tril: tf.Tensor, columns: tf.Tensor) -> GaussianPosterior:
            root, weights, kl = pseudo_target_posterior(covariance, tril, columns)
            inverse = tf.matmul(root, root, transpose_a=True)
            return GaussianPosterior(weights, inverse, log_ratio=-kl, inverse_root=root)

        if covariance.shape.rank == 3:
            return infer(covariance, tril, own)
        columns = tf.split(own, len(self.kernels), axis=1)
        trils = tf.unstack(tril) if tril.shape.rank == 3 else [tril] * len(columns)
        parts = zip(tf.unstack(covariance, axis=1), trils, columns, strict=True)
        return GaussianPosterior.joined([infer(*each) for each in parts])


def pseudo_target_parameters(
    pseudo_targets: Array | tf.Tensor, precision: float, num: int | None = None
) -> tuple[Parameter, Parameter]:
    """Make the parameters v, [M, Q], and L, [M, M], of N(v; u, Λ⁻¹) with Λ = L Lᵀ.

    They start at the pseudo-targets, a finite matrix, and at the precision, a positive number,
    times the identity; a :class:`ValueError` refuses others. Of ``num`` functions each has an L.
    """
    check_positive(precision=precision)
    pseudo_targets = check_matrix("pseudo_targets", pseudo_targets)
    precision_tril = np.sqrt(precision) * np.eye(len(pseudo_targets))
    if num is not None:
        precision_tril = np.tile(precision_tril, (num, 1, 1))
    transform = tfp.bijectors.Chain([ColumnScaledTril(), tfp.bijectors.FillTriangular()])
    return Parameter(pseudo_targets), Parameter(precision_tril, transform=transform)


def as_inducing_points(
    inducing_variable: InducingPoints | Array | tf.Tensor, name: str = "inducing_variable"
) -> InducingPoints:
    """Make GPflow's inducing points of a matrix.

    :param inducing_variable: Inducing inputs, Z, [M, D]; or inducing points, which are returned as
        they are.
    :param name: What it is called in messages.
    :raises ValueError: If Z is not a matrix of finite numbers, or what is given is another kind of
        inducing variables.
    """
    if isinstance(inducing_variable, InducingVariables):
        if type(inducing_variable) is not InducingPoints:
            raise ValueError(
                f"{name} must be a matrix or InducingPoints, of which kernels are covariances, got "
                f"{type(inducing_variable).__name__}."
            )
        check_matrix(name, inducing_variable.Z)
        return inducing_variable
    return InducingPoints(check_matrix(name, inducing_variable))
