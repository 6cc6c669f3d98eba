"""The fold over layers: first the inducing points, then any number of targets.

Where GPflow's default is float32, values are in float64 all the same: matrices over inducing points
are nearly singular, so that rounding errors of covariances with targets, some 1e-7, would become
noise of the features, as large as what jitter adds, and larger with each layer. In float32 are
gradients of the features' moments. Not those of kernels nor of the output: both are sums of numbers
that may be far larger than what is left of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel

from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.kernels import gram_K, gram_K_cross, gram_K_diag, kernel_in_dtype
from gpflow_dwp.layers.base import GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.linalg import Factorised
from gpflow_dwp.random import normal, normal_at_points, split_seed
from gpflow_dwp.validation import check_memory

__all__ = [
    "InducingPath",
    "propagate_targets",
    "sample_gram_matrices",
    "sample_inducing_path",
]


_ACCURATE = tf.float64

_Carry = Callable[[int, GramDraw, TargetBlocks], TargetBlocks]
"""Extends the draw of the hidden layer with an index to targets, given their covariance."""


class InducingPath(NamedTuple):
    """Joint draws of every layer at the inducing points.

    :param points: Z, [M, D].
    :param hidden: One draw for each hidden layer, bottom first; in float64, like ``output``.
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
    warp: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> InducingPath:
    """Draw every layer's Gram matrix at the inducing points.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param points: Inducing inputs Z, [M, D].
    :param num_samples: S.
    :param seed: A stateless seed, [2].
    :param warp: What makes observations of the scale of f, where the output layer is a regression
        on them; None where they are on it.
    :raises ValueError: If S matrices would not fit into the machine's memory.
    """
    layers = (*hidden, output)
    if hidden and not tf.is_tensor(num_samples):
        size = output.num_inducing
        check_memory(num_samples, size, size, num_samples=num_samples, num_inducing=size)
    covariance = kernel_in_dtype(layers[0].kernel, _ACCURATE)(tf.cast(points, _ACCURATE))[None]
    draws = []
    for index, (layer, above, layer_seed) in enumerate(
        zip(hidden, layers[1:], split_seed(seed, len(layers)), strict=False)
    ):
        try:
            draws.append(layer.sample_inducing(covariance, num_samples, layer_seed))
        except CholeskyError as error:
            raise CholeskyError(f"layers[{index}]: {error}") from error
        kernel = kernel_in_dtype(above.kernel, _ACCURATE)
        covariance = gram_K(kernel, draws[-1].gram, features=draws[-1].root)
    if output.inputs is None:
        return InducingPath(points, tuple(draws), output.infer_inducing(covariance))

    def expect(index: int, draw: GramDraw, covariance: TargetBlocks) -> TargetBlocks:
        return hidden[index].expect(draw, covariance)

    inputs = tf.cast(output.inputs, _ACCURATE)
    cross = _carry_targets(hidden, output, points, draws, inputs, expect).it
    targets = None
    if output.rows is not None:
        X, Y = output.rows
        targets = tf.cast(Y, _ACCURATE) if warp is None else warp(tf.cast(Y, _ACCURATE))
        if output.mean_function is not None:
            targets -= tf.cast(output.mean_function(X), _ACCURATE)
    return InducingPath(points, tuple(draws), output.infer_inducing(covariance, cross, targets))


@check_shapes("targets: [batch..., N, D]", "seed: [2]")
def propagate_targets(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    path: InducingPath,
    targets: tf.Tensor,
    num_samples: int,
    seed: Seed,
    *,
    full_cov: bool = False,
    keys: tf.Tensor | None = None,
    num_copies: int = 1,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Carry targets through draws of the inducing points.

    Without ``full_cov`` each target is carried on its own, with noise that is a function of its
    coordinates and the seed: the result does not depend on what else is in the batch.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param path: What :func:`sample_inducing_path` returned.
    :param targets: X, [N, D], or [S, N, D] where they differ from draw to draw.
    :param num_samples: S, as it was for ``path``.
    :param seed: A stateless seed, [2].
    :param full_cov: Whether targets are drawn jointly and the covariance between them returned.
    :param keys: What the noise is a function of, [N, D]; None for ``targets``.
    :param num_copies: K: successive groups of K targets are copies of one datum, drawn jointly.
    :return: The output's mean given the draws, [S, N, Q], and its variance, [S, N] where all output
        columns share it and [S, N, Q] where not (``full_cov``: covariance, [S, N, N] or
        [S, Q, N, N]). S is 1 without hidden layers.
    """
    covariance = _carry_targets(
        hidden,
        output,
        path.points,
        path.hidden,
        targets,
        _random_carry(
            hidden,
            targets if keys is None else keys,
            [num_samples, tf.shape(targets)[-2]],
            seed,
            joint=full_cov or num_copies > 1,
        ),
        full_cov=full_cov,
        num_copies=num_copies,
    )
    if num_copies > 1:
        covariance = covariance._replace(tt=_target_diagonal(covariance.tt))
    mean, variance = output.condition(path.output, covariance, full_cov=full_cov)
    mean, variance = tf.cast(mean, targets.dtype), tf.cast(variance, targets.dtype)
    return (
        mean if output.mean_function is None else mean + output.mean_function(targets)
    ), variance


@check_shapes("targets: [batch..., N, D]", "seed: [2]")
def sample_gram_matrices(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    path: InducingPath,
    targets: tf.Tensor,
    num_samples: int,
    seed: Seed,
) -> list[tf.Tensor]:
    """Draw every hidden layer's Gram matrix of the targets, jointly with those below.

    They are the ones that :func:`propagate_targets` passes through with ``full_cov``, whose
    parameters these are.

    :return: For each hidden layer, bottom first, [S, N, N].
    """
    grams = []
    shape = [num_samples, tf.shape(targets)[-2]]
    carry = _random_carry(hidden, targets, shape, seed, joint=True)

    def record(index: int, draw: GramDraw, covariance: TargetBlocks) -> TargetBlocks:
        grams.append(carry(index, draw, covariance))
        return grams[-1]

    _carry_targets(hidden, output, path.points, path.hidden, targets, record, full_cov=True)
    return [tf.cast(gram.tt, targets.dtype) for gram in grams]


def _random_carry(
    hidden: Sequence[GramLayer],
    keys: tf.Tensor,
    shape: list[int | tf.Tensor],
    seed: Seed,
    *,
    joint: bool,
) -> _Carry:
    """What extends the draw of each hidden layer to S, N = ``shape`` targets at random."""
    seeds = split_seed(seed, len(hidden) + 1)

    def carry(index: int, draw: GramDraw, covariance: TargetBlocks) -> TargetBlocks:
        layer = hidden[index]
        if joint:
            # Joint draws need numbers that are independent even where two targets coincide.
            noise = normal([*shape, layer.noise_width], seeds[index], keys.dtype)
        else:
            noise = normal_at_points(keys, seeds[index], shape[0], layer.noise_width)
        return layer.condition(draw, covariance, noise, full_cov=joint)

    return carry


def _carry_targets(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    points: tf.Tensor,
    draws: Sequence[GramDraw],
    targets: tf.Tensor,
    carry: _Carry,
    *,
    full_cov: bool = False,
    num_copies: int = 1,
) -> TargetBlocks:
    """Return the output layer's covariance blocks over targets, given the draws below it."""
    joint = full_cov or num_copies > 1
    layers = (*hidden, output)
    covariance = _covariance_of_targets(
        kernel_in_dtype(layers[0].kernel, _ACCURATE),
        tf.cast(points, _ACCURATE),
        tf.cast(targets, _ACCURATE),
        full_cov=full_cov,
        num_copies=num_copies,
    )
    for index, (above, draw) in enumerate(zip(layers[1:], draws, strict=True)):
        if targets.shape.rank == 3:
            draw = _with_covariance_for_each_draw(draw)
        gram = carry(index, draw, covariance)
        covariance = _covariance_of_gram(
            kernel_in_dtype(above.kernel, _ACCURATE), draw, gram, full_cov=joint
        )
    return covariance


def _covariance_of_targets(
    kernel: Kernel, points: tf.Tensor, targets: tf.Tensor, *, full_cov: bool, num_copies: int
) -> TargetBlocks:
    if targets.shape.rank == 2:
        return TargetBlocks(
            it=kernel(points, targets)[None], tt=kernel(targets, full_cov=full_cov)[None]
        )
    shape = tf.shape(targets)
    cross = kernel(points, tf.reshape(targets, [-1, targets.shape[-1]]))
    it = tf.transpose(tf.reshape(cross, [-1, shape[0], shape[1]]), [1, 0, 2])
    it = tf.ensure_shape(it, [targets.shape[0], points.shape[0], targets.shape[1]])
    if num_copies > 1:
        groups = [shape[0], shape[1] // num_copies, num_copies, targets.shape[-1]]
        return TargetBlocks(it=it, tt=kernel(tf.reshape(targets, groups)))
    return TargetBlocks(it=it, tt=kernel(targets, full_cov=full_cov))


def _with_covariance_for_each_draw(draw: GramDraw) -> GramDraw:
    shape = tf.shape(draw.gram)

    def spread(matrix: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.broadcast_to(matrix, shape), draw.gram.shape)

    return draw._replace(covariance=Factorised(*map(spread, draw.covariance)))


def _target_diagonal(tt: tf.Tensor) -> tf.Tensor:
    """The diagonal of all blocks, [S, N]."""
    diagonal = tf.linalg.diag_part(tt)
    return tf.reshape(diagonal, [tf.shape(diagonal)[0], -1])


def _covariance_of_gram(
    kernel: Kernel, draw: GramDraw, gram: TargetBlocks, *, full_cov: bool
) -> TargetBlocks:
    target_diagonal = _target_diagonal(gram.tt) if full_cov else gram.tt
    features = None if gram.features is None else (draw.root, gram.features)
    inducing_diagonal = tf.reduce_sum(tf.square(draw.root), axis=-1)
    cross = gram_K_cross(kernel, gram.it, inducing_diagonal, target_diagonal, features=features)
    return TargetBlocks(
        it=cross,
        tt=gram_K(kernel, gram.tt) if full_cov else gram_K_diag(kernel, gram.tt),
    )
