"""The fold over layers: first the inducing points, then any number of targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.kernels import gram_K, gram_K_cross, gram_K_diag
from gpflow_dwp.layers.base import GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.random import normal, normal_at_points, split_seed

__all__ = ["InducingPath", "propagate_targets", "sample_inducing_path"]


class InducingPath(NamedTuple):
    """Joint draws of every layer at the inducing points.

    :param points: Z, [M, D].
    :param hidden: One draw for each hidden layer, bottom first.
    :param output: The output layer's posterior given the topmost Gram matrix.
    """

    points: tf.Tensor
    hidden: tuple[GramDraw, ...]
    output: GaussianDraw

    @property
    def log_ratios(self) -> tuple[tf.Tensor, ...]:
        """Every layer's log P - log Q, bottom first, [S] (or [1] where all draws agree)."""
        return (*(draw.log_ratio for draw in self.hidden), self.output.log_ratio)


@check_shapes("points: [M, D]", "seed: [2]")
def sample_inducing_path(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    points: tf.Tensor,
    num_samples: int,
    seed: Seed,
) -> InducingPath:
    """Draw every layer's Gram matrix at the inducing points.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param points: Inducing inputs Z, [M, D].
    :param num_samples: S.
    :param seed: A stateless seed, [2].
    """
    layers = (*hidden, output)
    covariance = layers[0].kernel(points)[None]
    draws = []
    for index, (layer, above, layer_seed) in enumerate(
        zip(hidden, layers[1:], split_seed(seed, len(layers)), strict=False)
    ):
        try:
            draws.append(layer.sample_inducing(covariance, num_samples, layer_seed))
        except CholeskyError as error:
            raise CholeskyError(f"layers[{index}]: {error}") from error
        covariance = gram_K(above.kernel, draws[-1].gram, features=draws[-1].root)
    return InducingPath(points, tuple(draws), output.infer_inducing(covariance))


@check_shapes("targets: [N, D]", "seed: [2]")
def propagate_targets(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    path: InducingPath,
    targets: tf.Tensor,
    num_samples: int,
    seed: Seed,
    *,
    full_cov: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Carry targets through draws of the inducing points.

    Without ``full_cov`` each target is carried on its own, with noise that is a function of its
    coordinates and the seed: the result does not depend on what else is in the batch.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param path: What :func:`sample_inducing_path` returned.
    :param targets: X, [N, D].
    :param num_samples: S, as it was for ``path``.
    :param seed: A stateless seed, [2].
    :param full_cov: Whether targets are drawn jointly and the covariance between them returned.
    :return: The output's mean given the draws, [S, N, Q], and its variance, [S, N], the same
        for every output column (``full_cov``: covariance, [S, N, N]). S is 1 without hidden layers.
    """
    layers = (*hidden, output)
    bottom = layers[0].kernel
    covariance = TargetBlocks(
        it=bottom(path.points, targets)[None],
        tt=bottom(targets, full_cov=full_cov)[None],
    )
    for layer, above, draw, layer_seed in zip(
        hidden, layers[1:], path.hidden, split_seed(seed, len(layers)), strict=False
    ):
        if full_cov:
            # Joint draws need numbers that are independent even where two targets coincide.
            shape = [num_samples, tf.shape(targets)[0], layer.noise_width]
            noise = normal(shape, layer_seed, targets.dtype)
        else:
            noise = normal_at_points(targets, layer_seed, num_samples, layer.noise_width)
        gram = layer.condition(draw, covariance, noise, full_cov=full_cov)
        covariance = _covariance_of_gram(above, draw, gram, full_cov=full_cov)
    return output.condition(path.output, covariance, full_cov=full_cov)


def _covariance_of_gram(
    layer: GramLayer | OutputLayer, draw: GramDraw, gram: TargetBlocks, *, full_cov: bool
) -> TargetBlocks:
    kernel = layer.kernel
    target_diagonal = tf.linalg.diag_part(gram.tt) if full_cov else gram.tt
    features = None if gram.features is None else (draw.root, gram.features)
    inducing_diagonal = tf.reduce_sum(tf.square(draw.root), axis=-1)
    return TargetBlocks(
        it=gram_K_cross(kernel, gram.it, inducing_diagonal, target_diagonal, features=features),
        tt=gram_K(kernel, gram.tt) if full_cov else gram_K_diag(kernel, gram.tt),
    )
