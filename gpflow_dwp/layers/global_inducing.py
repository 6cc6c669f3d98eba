"""The Gaussian output layer: a GP with a global-inducing posterior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.kernels import Kernel

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers._gaussian_output import moments_at_targets
from gpflow_dwp.layers._pseudo_targets import pseudo_target_parameters
from gpflow_dwp.layers.base import GaussianDraw, OutputLayer
from gpflow_dwp.linalg import pseudo_target_posterior
from gpflow_dwp.validation import check_integers, check_memory

__all__ = ["GlobalInducingGPLayer"]


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

    :param kernel: Acts on what comes from below.
    :param num_outputs: Q, the number of independent functions that share the kernel.
    :param pseudo_targets: Starting values of v, [M, Q]; None for zeros.
    :param num_inducing: M, where ``pseudo_targets`` does not tell it.
    :param precision: Starting value of Λ: a positive number times the identity.
    :raises ValueError: If ``kernel`` is none of GPflow's kind, ``pseudo_targets`` and
        ``num_inducing`` are both missing or do not fit each other and ``num_outputs``, the former
        are not finite, the latter too large for the machine's memory, or ``precision`` is not
        positive.
    """

    def __init__(
        self,
        kernel: Kernel,
        num_outputs: int,
        *,
        pseudo_targets: npt.NDArray[np.float64] | tf.Tensor | None = None,
        num_inducing: int | None = None,
        precision: float = np.exp(-4.0),
    ) -> None:
        check_integers(num_outputs=num_outputs)
        if pseudo_targets is None:
            if num_inducing is None:
                raise ValueError("pseudo_targets or num_inducing must be given.")
            check_integers(num_inducing=num_inducing)
            check_memory(
                num_inducing,
                max(num_inducing, num_outputs),
                num_inducing=num_inducing,
                num_outputs=num_outputs,
            )
            pseudo_targets = np.zeros((num_inducing, num_outputs))
        shape = np.shape(pseudo_targets)
        wanted = ("num_inducing" if num_inducing is None else num_inducing, num_outputs)
        if len(shape) != 2 or shape[1] != num_outputs or num_inducing not in (None, shape[0]):
            raise ValueError(
                f"pseudo_targets must have shape [{wanted[0]}, {wanted[1]}], got {list(shape)}."
            )
        super().__init__(kernel, shape[0])
        self.num_outputs = num_outputs
        self.pseudo_targets, self.precision_tril = pseudo_target_parameters(
            pseudo_targets, precision
        )

    @inherit_check_shapes
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianDraw:
        root, weights, kl = pseudo_target_posterior(
            covariance,
            tf.cast(self.precision_tril, covariance.dtype),
            tf.cast(self.pseudo_targets, covariance.dtype),
        )
        inverse = tf.matmul(root, root, transpose_a=True)
        return GaussianDraw(weights, inverse, log_ratio=-kl, root=root)

    @inherit_check_shapes
    def condition(
        self, draw: GaussianDraw, covariance: TargetBlocks, *, full_cov: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return moments_at_targets(draw, covariance, full_cov=full_cov)
