"""The output layer with draws of u and f in place of their distributions, to see what they cost."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.layers import GaussianPosterior, GlobalInducingGPLayer, OutputLayer
from gpflow_dwp.linalg import cholesky, factorise, relative_jitter
from gpflow_dwp.random import normal

__all__ = ["SampledOutputLayer"]

_JITTER = 1e-6


class SampledOutputLayer(OutputLayer):
    r"""A Gaussian output layer whose function values are drawn, at inducing points and targets.

    With K = L Lᵀ and u = L w, the posterior of w is Gaussian with precision B = I + Lᵀ Λ L = C Cᵀ
    and mean B⁻¹ Lᵀ Λ v. Given w = E[w] + C⁻ᵀ ε, targets follow the prior, and the log ratio is
    log p(w) - log q(w) = ½ ‖ε‖² - ½ ‖w‖² - log|C| for each output.

    :param layer: The layer whose kernel and parameters are used.
    :raises ValueError: If it has no pseudo-targets.
    :ivar seeds: Stateless seeds of u and f, [2] each, to be set before every draw.
    """

    seeds: tuple[Seed, Seed]

    def __init__(self, layer: OutputLayer) -> None:
        if not isinstance(layer, GlobalInducingGPLayer):
            raise ValueError(
                "model must have pseudo-targets in its output layer for that to be sampled, got "
                f"{type(layer).__name__}."
            )
        super().__init__(layer.kernel, layer.num_inducing)
        self.num_outputs = layer.num_outputs
        self._layer = layer

    @inherit_check_shapes
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianPosterior:
        tril = cholesky(factorise(covariance, relative_jitter(covariance, _JITTER)))
        precision_tril = tf.convert_to_tensor(self._layer.precision_tril)
        observed = tf.matmul(precision_tril, tril, transpose_a=True)
        identity = tf.eye(self.num_inducing, dtype=covariance.dtype)
        inner = identity + tf.matmul(observed, observed, transpose_a=True)
        root = cholesky(factorise(inner, tf.zeros_like(inner[:, 0, 0])))

        targets = tf.matmul(precision_tril, self._layer.pseudo_targets, transpose_a=True)
        information = tf.matmul(observed, targets[None], transpose_a=True)
        noise = normal(tf.shape(information), self.seeds[0], covariance.dtype)
        half = tf.linalg.triangular_solve(root, information) + noise
        whitened = tf.linalg.triangular_solve(root, half, adjoint=True)

        squares = tf.reduce_sum(tf.square(noise) - tf.square(whitened), axis=[-2, -1])
        log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)), axis=-1)
        inverse_root = tf.linalg.triangular_solve(tril, identity + tf.zeros_like(tril))
        return GaussianPosterior(
            weights=tf.linalg.triangular_solve(tril, whitened, adjoint=True),
            inverse=tf.matmul(inverse_root, inverse_root, transpose_a=True),
            log_ratio=0.5 * squares - self._layer.num_outputs * log_det,
        )

    @inherit_check_shapes
    def condition(
        self, draw: GaussianPosterior, blocks: TargetBlocks
    ) -> tuple[tf.Tensor, tf.Tensor]:
        mean, variance = self._layer.condition(draw, blocks)
        # The derivative of a root of zero is infinite.
        floor = tf.constant(np.finfo(mean.dtype.as_numpy_dtype).eps, mean.dtype)
        deviation = tf.sqrt(tf.maximum(variance[..., 0], floor))
        noise = normal(tf.shape(mean), self.seeds[1], mean.dtype)
        return mean + deviation * noise, tf.zeros_like(variance)
