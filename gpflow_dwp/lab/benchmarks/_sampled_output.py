"""The output layer with a draw of u in place of its distribution, to see what that costs."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.layers import GaussianDraw, GlobalInducingGPLayer, OutputLayer
from gpflow_dwp.linalg import cholesky, factorise, relative_jitter
from gpflow_dwp.random import normal

__all__ = ["SampledOutputLayer"]

_JITTER = 1e-6


class SampledOutputLayer(OutputLayer):
    r"""A Gaussian output layer whose function values at the inducing points are drawn.

    With K = L Lᵀ and u = L w, the posterior of w is Gaussian with precision B = I + Lᵀ Λ L = C Cᵀ
    and mean B⁻¹ Lᵀ Λ v. Given w = E[w] + C⁻ᵀ ε, targets follow the prior, and the log ratio is
    log p(w) - log q(w) = ½ ‖ε‖² - ½ ‖w‖² - log|C| for each output.

    :param layer: The layer whose kernel and parameters are used.
    :param seed: A stateless seed for ε, [2].
    """

    def __init__(self, layer: GlobalInducingGPLayer, seed: Seed) -> None:
        super().__init__(layer.kernel, layer.num_inducing)
        self._layer = layer
        self._seed = seed

    @inherit_check_shapes
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianDraw:
        tril = cholesky(factorise(covariance, relative_jitter(covariance, _JITTER)))
        precision_tril = tf.convert_to_tensor(self._layer.precision_tril)
        observed = tf.matmul(precision_tril, tril, transpose_a=True)
        identity = tf.eye(self.num_inducing, dtype=covariance.dtype)
        inner = identity + tf.matmul(observed, observed, transpose_a=True)
        root = cholesky(factorise(inner, tf.zeros_like(inner[:, 0, 0])))

        targets = tf.matmul(precision_tril, self._layer.pseudo_targets, transpose_a=True)
        information = tf.matmul(observed, targets[None], transpose_a=True)
        noise = normal(tf.shape(information), self._seed, covariance.dtype)
        half = tf.linalg.triangular_solve(root, information) + noise
        whitened = tf.linalg.triangular_solve(root, half, adjoint=True)

        squares = tf.reduce_sum(tf.square(noise) - tf.square(whitened), axis=[-2, -1])
        log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)), axis=-1)
        inverse_root = tf.linalg.triangular_solve(tril, identity + tf.zeros_like(tril))
        return GaussianDraw(
            weights=tf.linalg.triangular_solve(tril, whitened, adjoint=True),
            inverse=tf.matmul(inverse_root, inverse_root, transpose_a=True),
            log_ratio=0.5 * squares - self._layer.num_outputs * log_det,
        )

    @inherit_check_shapes
    def condition(
        self, draw: GaussianDraw, covariance: TargetBlocks
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return self._layer.condition(draw, covariance)
