"""A hidden layer with a connection past it."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpflow_dwp.base import Seed, TargetBlocks, sizes
from gpflow_dwp.layers.base import Description, GramDraw, GramLayer
from gpflow_dwp.linalg import cholesky
from gpflow_dwp.random import TargetNoise
from gpflow_dwp.validation import check_instance

__all__ = ["SkipLayer"]


class SkipLayer(GramLayer):
    """Adds the covariance that came from below to a layer's draw: G + K.

    Where G and K are Gram matrices of features, the layer above sees both, side by side: with a
    kernel of distances, what the layers below have learned is not forgotten at depth.

    :param layer: Draws G, with its own kernel and posterior.
    :raises ValueError: If ``layer`` is no :class:`GramLayer`.
    """

    def __init__(self, layer: GramLayer) -> None:
        check_instance(GramLayer, layer=layer)
        super().__init__(layer.kernel, layer.num_inducing, layer.jitter)
        self.layer = layer

    def describe(self) -> Description:
        draws, posterior = self.layer.describe()
        return Description(f"{draws}, and the one below", posterior)

    @inherit_check_shapes
    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        draw = self.layer.sample_inducing(covariance, num_samples, seed)
        root = tf.broadcast_to(cholesky(draw.below), sizes(draw.gram))
        features = tf.concat([draw.features, root], axis=-1)
        return draw._replace(gram=draw.gram + covariance, features=features)

    @inherit_check_shapes
    def condition(self, draw: GramDraw, blocks: TargetBlocks, noise: TargetNoise) -> TargetBlocks:
        features = draw.features[..., : -self.num_inducing]
        own = draw._replace(gram=tf.matmul(features, features, transpose_b=True), features=features)
        drawn = self.layer.condition(own, blocks, noise)
        return TargetBlocks(drawn.it + blocks.it, drawn.tt + blocks.tt)

    def sample_prior(self, covariance: tf.Tensor, seed: Seed) -> tf.Tensor:
        return self.layer.sample_prior(covariance, seed) + covariance
