"""The Gaussian output layer: a GP with a global-inducing posterior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.kernels import Kernel

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers._pseudo_targets import pseudo_target_parameters
from gpflow_dwp.layers.base import GaussianDraw, OutputLayer
from gpflow_dwp.linalg import conditional_moments, factorise, relative_jitter, solve, whiten
from gpflow_dwp.validation import check_integers

__all__ = ["GlobalInducingGPLayer"]


class GlobalInducingGPLayer(OutputLayer):
    r"""A Gaussian process layer whose posterior comes from pseudo-targets at the inducing points.

    For each output column, given the covariance K of the inducing points,

    .. math:: q(u \mid K) \propto \mathcal N(u; 0, K)\, \mathcal N(v; u, \Lambda^{-1}),
              \quad \Lambda = L L^T

    (Ober and Aitchison, "Global inducing point variational posteriors for Bayesian neural networks
    and deep Gaussian processes", 2021, equation 9). That is the posterior of a regression on v with
    noise covariance Λ⁻¹, so everything follows from one factorisation of C = K + Λ⁻¹. As
    p(u) N(v; u, Λ⁻¹) = q(u) N(v; 0, C), with weights a = C⁻¹ v,

    .. math:: \mathrm{KL}[q(u) \| p(u)] = \mathrm E_q \log \mathcal N(v; u, \Lambda^{-1})
              - \log \mathcal N(v; 0, C)
              = \tfrac12 \{\operatorname{tr}(C^{-1} \Lambda^{-1}) - M + \log|C \Lambda|
              + a^T v - a^T \Lambda^{-1} a\}.

    :param kernel: Acts on what comes from below.
    :param num_outputs: Q, the number of independent functions that share the kernel.
    :param pseudo_targets: Starting values of v, [M, Q]; None for zeros.
    :param num_inducing: M, where ``pseudo_targets`` does not tell it.
    :param precision: Starting value of Λ: a positive number times the identity.
    :param jitter: Added to the diagonal of K_ii, relative to its mean: without it C turns
        indefinite where pseudo-targets become very precise.
    :raises ValueError: If ``pseudo_targets`` and ``num_inducing`` are both missing or do not fit
        each other and ``num_outputs``, ``precision`` is not positive or ``jitter`` is
        negative.
    """

    def __init__(
        self,
        kernel: Kernel,
        num_outputs: int,
        *,
        pseudo_targets: npt.NDArray[np.float64] | tf.Tensor | None = None,
        num_inducing: int | None = None,
        precision: float = np.exp(-4.0),
        jitter: float = 1e-8,
    ) -> None:
        check_integers(num_outputs=num_outputs)
        if pseudo_targets is None:
            if num_inducing is None:
                raise ValueError("pseudo_targets or num_inducing must be given.")
            check_integers(num_inducing=num_inducing)
            pseudo_targets = np.zeros((num_inducing, num_outputs))
        shape = np.shape(pseudo_targets)
        wanted = ("num_inducing" if num_inducing is None else num_inducing, num_outputs)
        if len(shape) != 2 or shape[1] != num_outputs or num_inducing not in (None, shape[0]):
            raise ValueError(
                f"pseudo_targets must have shape [{wanted[0]}, {wanted[1]}], got {list(shape)}."
            )
        if not jitter >= 0:
            raise ValueError(f"jitter must not be negative, got {jitter}.")
        super().__init__(kernel, shape[0])
        self.num_outputs = num_outputs
        self.jitter = jitter
        self.pseudo_targets, self.precision_tril = pseudo_target_parameters(
            pseudo_targets, precision
        )

    @inherit_check_shapes
    def infer_inducing(self, covariance: tf.Tensor) -> GaussianDraw:
        precision_tril = tf.convert_to_tensor(self.precision_tril)
        identity = tf.eye(self.num_inducing, dtype=precision_tril.dtype)
        noise_root = tf.linalg.triangular_solve(precision_tril, identity, adjoint=True)
        noise = tf.matmul(noise_root, noise_root, transpose_b=True)
        observed = factorise(
            covariance + noise,
            relative_jitter(covariance, self.jitter),
            name="the output layer's K_ii + inv(Λ)",
        )
        whitened_noise, log_det = whiten(observed, noise_root[None])
        weights = solve(observed, self.pseudo_targets[None])
        residual = tf.matmul(noise, weights)
        fit = tf.reduce_sum(weights * (self.pseudo_targets - residual), axis=[-2, -1])
        trace = tf.reduce_sum(tf.square(whitened_noise), axis=[-2, -1])
        log_precision = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(precision_tril)))
        volume = trace - self.num_inducing + log_det + 2.0 * log_precision
        return GaussianDraw(
            covariance=observed,
            pseudo_targets=self.pseudo_targets[None],
            log_ratio=-0.5 * (self.num_outputs * volume + fit),
        )

    @inherit_check_shapes
    def condition(
        self, draw: GaussianDraw, covariance: TargetBlocks, *, full_cov: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if full_cov:
            projected, _ = whiten(draw.covariance, covariance.it)
            whitened_values, _ = whiten(draw.covariance, draw.pseudo_targets)
            mean = tf.matmul(projected, whitened_values, transpose_a=True)
            return mean, covariance.tt - tf.matmul(projected, projected, transpose_a=True)
        mean, explained = conditional_moments(draw.covariance, covariance.it, draw.pseudo_targets)
        # Cancellation may leave a rounding error below zero.
        return mean, tf.maximum(covariance.tt - explained, tf.zeros([], explained.dtype))
