"""The fold over layers: first the inducing points, then any number of targets.

Where GPflow's default is float32, values are in float64 all the same: matrices over inducing points
are nearly singular, so that rounding errors of covariances with targets, some 1e-7, would become
noise of the features, as large as what jitter adds, and larger with each layer. In float32 are
gradients of the features' moments. Not those of kernels nor of the output: both are sums of numbers
that may be far larger than what is left of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel, MultioutputKernel

from gpflow_dwp.base import Seed, TargetBlocks, sizes
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.kernels import gram_K, gram_K_cross, gram_K_diag
from gpflow_dwp.kernels.draws import KernelDraws
from gpflow_dwp.kernels.gram import cross_covariance, kernel_in_dtype
from gpflow_dwp.layers.base import GramDraw, GramLayer, Layer, OutputLayer
from gpflow_dwp.layers.nearest_neighbours import NearestNeighbourGPLayer
from gpflow_dwp.layers.rows import NearestRows
from gpflow_dwp.layers.rows_posterior import RowsOfKernels
from gpflow_dwp.likelihoods import Warp
from gpflow_dwp.random import TargetNoise, split_seed
from gpflow_dwp.validation import check_memory

__all__ = [
    "InducingPath",
    "expected_features",
    "propagate_targets",
    "regression_blocks",
    "sample_gram_matrices",
    "sample_inducing_path",
]


_ACCURATE = tf.float64


class InducingPath(NamedTuple):
    """Joint draws of every layer at the inducing points.

    :param points: Inducing inputs, Z, [M, D].
    :param hidden: One draw for each hidden layer, bottom first; in float64, like ``output``.
    :param output: The output layer's posterior given the topmost Gram matrix, a
        :class:`GaussianPosterior`, or given features, :class:`RowsOfKernels`.
    """

    points: tf.Tensor
    hidden: tuple[GramDraw, ...]
    output: Any

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
    warp: Warp | None = None,
    *,
    for_predictions: bool = False,
) -> InducingPath:
    """Draw every layer's Gram matrix at the inducing points.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param points: Inducing inputs Z, [M, D].
    :param num_samples: Number of joint draws, S.
    :param seed: A stateless seed, [2].
    :param warp: What makes observations of the scale of f, where the output layer is a regression
        on them; None where they are on it.
    :param for_predictions: Whether rows are wanted that predictions condition on.
    :raises ValueError: If S matrices would not fit into the machine's memory.
    """
    by_rows = isinstance(output, NearestNeighbourGPLayer) or (
        for_predictions and isinstance(output, NearestRows) and output.num_neighbours > 0
    )
    draws, covariance = _draw_hidden(hidden, output, points, num_samples, seed)
    if by_rows:
        features, at = expected_features(hidden, points, draws, output.inputs), None
        if not isinstance(output, NearestNeighbourGPLayer):
            at = draws[-1].features if hidden else tf.cast(points, _ACCURATE)[None]
        posterior = output.infer_rows(features, _targets_of(output, warp), at)
    elif output.inputs is None:
        posterior = output.infer_inducing(covariance)
    else:
        blocks, _ = _carry_targets((*hidden, output), points, draws, output.inputs)
        posterior = output.infer_inducing(covariance, blocks.it, _targets_of(output, warp))
    return InducingPath(points, tuple(draws), posterior)


def _draw_hidden(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    points: tf.Tensor,
    num_samples: int,
    seed: Seed,
) -> tuple[list[GramDraw], tf.Tensor]:
    """Draws of the hidden layers, and the output layer's K_ii given them."""
    layers = (*hidden, output)
    if hidden and not tf.is_tensor(num_samples):
        size = output.num_inducing
        check_memory(num_samples, size, size, num_samples=num_samples, num_inducing=size)
    covariance = _of_inputs(layers[0], points)
    draws: list[GramDraw] = []
    for index, (layer, above, layer_seed) in enumerate(
        zip(hidden, layers[1:], split_seed(seed, len(layers)), strict=False)
    ):
        try:
            draws.append(layer.sample_inducing(covariance, num_samples, layer_seed))
        except CholeskyError as error:
            raise CholeskyError(f"layers[{index}]: {error}") from error
        covariance = _of_draw(above, draws[-1])
    return draws, covariance


def _of_kernels(layer: Layer, evaluate: Callable[[Kernel], Any]) -> Any:
    """A covariance, or its blocks, by the layer's kernel; of several behind the axis of S."""
    kernels = layer.kernels if isinstance(layer, OutputLayer) else (layer.kernel,)
    found = [evaluate(kernel_in_dtype(kernel, _ACCURATE)) for kernel in kernels]
    if not isinstance(layer.kernel, MultioutputKernel):
        return found[0]
    if isinstance(found[0], TargetBlocks):
        it, tt, _ = zip(*found, strict=True)
        return TargetBlocks(tf.stack(it, axis=1), tf.stack(tt, axis=1))
    return tf.stack(found, axis=1)


def _of_inputs(layer: Layer, points: tf.Tensor) -> tf.Tensor:
    """The layer's K_ii where it is the lowest one."""

    def evaluate(kernel: Kernel) -> tf.Tensor:
        covariance = kernel(tf.cast(points, _ACCURATE))
        # Not by [None], whose gradient is a copy.
        return covariance if isinstance(kernel, KernelDraws) else tf.expand_dims(covariance, 0)

    return _of_kernels(layer, evaluate)


def _of_draw(layer: Layer, draw: GramDraw) -> tf.Tensor:
    """The layer's K_ii, given a draw of the layer below."""
    return _of_kernels(layer, lambda kernel: gram_K(kernel, draw.gram, features=draw.features))


def _targets_of(output: OutputLayer, warp: Warp | None) -> tf.Tensor | None:
    """Observations of the layer's rows, if it has some, on the scale of f and less the mean."""
    if output.rows is None:
        return None
    X, Y = output.rows
    targets = tf.cast(Y, _ACCURATE)
    # What is missing counts for nothing, but would make gradients NaN.
    targets = tf.where(tf.math.is_nan(targets), tf.zeros_like(targets), targets)
    if warp is not None:
        targets = warp.forward(targets)
    if output.mean_function is not None:
        targets -= tf.cast(output.mean_function(X), _ACCURATE)
    return targets


def expected_features(
    hidden: Sequence[GramLayer], points: tf.Tensor, draws: Sequence[GramDraw], X: tf.Tensor
) -> tf.Tensor:
    """Features that inputs are expected to have below the output, given draws there, [S, N, R].

    Without hidden layers they are the inputs, [1, N, D]. Other parameters are those of
    :func:`sample_inducing_path`.

    :param draws: One of each hidden layer.
    :param X: Inputs, [N, D].
    :raises ValueError: If the topmost hidden layer has no features.
    """
    if not hidden:
        return tf.cast(X, _ACCURATE)[None]
    _, grams = _carry_targets(hidden, points, draws, X)
    if grams[-1].features is None:
        raise ValueError(
            f"layers[{len(hidden) - 1}] must have features below an output of nearest rows, got a "
            f"{type(hidden[-1]).__name__}."
        )
    return grams[-1].features


def regression_blocks(
    hidden: Sequence[GramLayer],
    output: NearestRows,
    points: tf.Tensor,
    num_samples: int,
    seed: Seed,
    warp: Warp | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Draw the parts of the regression that an output layer's posterior is.

    Parameters as for :func:`sample_inducing_path`.

    :return: K of the inducing points, [S, M, M], C between them and the N data, [S, M, N], the
        data's variances, [S, N], behind an axis of functions where these have kernels of their own;
        and observations, [N, Q], 0 where they are missing.
    """
    points = tf.convert_to_tensor(points)
    draws, covariance = _draw_hidden(hidden, output, points, num_samples, seed)
    blocks, _ = _carry_targets((*hidden, output), points, draws, output.inputs)
    return covariance, blocks.it, blocks.diagonal, _targets_of(output, warp)


@check_shapes(
    "targets: [own..., N, D]",
    "seed: [2]",
    "keys: [rows, key]",
    "return[0]: [S, N, Q]",
    "return[1]: [S, ...]",
)
def propagate_targets(
    hidden: Sequence[GramLayer],
    output: OutputLayer,
    path: InducingPath,
    targets: tf.Tensor,
    seed: Seed,
    keys: tf.Tensor | None = None,
    *,
    full_cov: bool = False,
    mixed: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Carry targets through draws of the inducing points, each by itself or all jointly.

    A single target's noise is a function of its key and the seed: the result does not depend on
    what else is in the batch.

    :param path: What :func:`sample_inducing_path` returned of these layers.
    :param targets: Inputs, X, [N, D]; or [S, N, D] where every draw has its own.
    :param seed: A stateless seed, [2].
    :param keys: What the noise of single targets is a function of, [N, ...], or [1, ...] where all
        share it; None for ``targets``.
    :param full_cov: Whether targets are drawn jointly, and their covariance is wanted.
    :param mixed: Whether moments of the outputs are wanted, not of the functions that they mix,
        without the mean function.
    :return: The output's mean given the draws, [S, N, Q], and its variance, [S, N] where all output
        columns share it and [S, N, Q] where not; or its covariance, [S, N, N] or [S, Q, N, N]. S is
        1 without hidden layers.
    """
    if full_cov:
        keys = None  # what is drawn jointly is independent even where two targets coincide
    elif keys is None:
        keys = targets
    if isinstance(path.output, RowsOfKernels):
        features = expected_features(hidden, path.points, path.hidden, targets)
        condition = output.condition_jointly if full_cov else output.condition_rows
        moments = condition(path.output, features)
    else:
        noises = _noises(path.hidden, targets, seed, keys)
        blocks, _ = _carry_targets(
            (*hidden, output), path.points, path.hidden, targets, noises, full_cov=full_cov
        )
        moments = output.condition(path.output, blocks)
    moments = output.mix(*moments) if mixed else moments
    mean, variance = (tf.cast(moment, targets.dtype) for moment in moments)
    if output.mean_function is not None and mixed:
        mean += output.mean_function(targets)
    if full_cov or variance.shape.rank == 2:
        return mean, variance
    return mean, tf.linalg.matrix_transpose(variance)


@check_shapes("targets: [N, D]", "seed: [2]")
def sample_gram_matrices(
    hidden: Sequence[GramLayer], path: InducingPath, targets: tf.Tensor, seed: Seed
) -> list[tf.Tensor]:
    """Draw every hidden layer's Gram matrix of the targets, jointly with those below.

    They are the ones that :func:`propagate_targets` passes through with ``full_cov``, whose
    parameters these are.

    :return: For each hidden layer, bottom first, [S, N, N].
    """
    if not hidden:
        return []
    noises = _noises(path.hidden, targets, seed)
    _, grams = _carry_targets(hidden, path.points, path.hidden, targets, noises, full_cov=True)
    return [tf.cast(gram.tt, targets.dtype) for gram in grams]


def _noises(
    draws: Sequence[GramDraw], targets: tf.Tensor, seed: Seed, keys: tf.Tensor | None = None
) -> list[TargetNoise]:
    """The random numbers of targets in each hidden layer; ``keys`` as for :class:`TargetNoise`."""
    count, dtype = sizes(targets)[-2], targets.dtype
    return [
        TargetNoise(own, sizes(draw.gram)[0], count, dtype, keys)
        for draw, own in zip(draws, split_seed(seed, len(draws) + 1), strict=False)
    ]


def _carry_targets(
    layers: Sequence[Any],
    points: tf.Tensor,
    draws: Sequence[GramDraw],
    targets: tf.Tensor,
    noises: Sequence[TargetNoise] | None = None,
    *,
    full_cov: bool = False,
) -> tuple[TargetBlocks, list[TargetBlocks]]:
    """Carry targets up to the last layer: its covariance blocks, and Gram matrices' of all draws.

    :param noises: Of each draw; None for what is expected.
    """
    covariance = _of_kernels(
        layers[0],
        lambda kernel: _covariance_of_targets(
            kernel, tf.cast(points, _ACCURATE), tf.cast(targets, _ACCURATE), full_cov
        ),
    )
    grams: list[TargetBlocks] = []
    for index, (layer, draw) in enumerate(zip(layers, draws, strict=False)):
        if noises is None:
            gram = layer.expect(draw, covariance)
        else:
            gram = layer.condition(draw, covariance, noises[index])
        grams.append(gram)
        if index + 1 < len(layers):
            evaluate = functools.partial(_covariance_of_gram, draw=draw, gram=gram)
            covariance = _of_kernels(layers[index + 1], evaluate)
    return covariance, grams


def _covariance_of_targets(
    kernel: Kernel, points: tf.Tensor, targets: tf.Tensor, full_cov: bool
) -> TargetBlocks:
    own = kernel(targets, full_cov=full_cov)
    if isinstance(kernel, KernelDraws):
        return TargetBlocks(kernel(points, targets), own)
    if targets.shape.rank == 2:
        cross = cross_covariance(kernel, points, targets)
        return TargetBlocks(*(tf.expand_dims(block, 0) for block in (cross, own)))
    rows = tf.reshape(targets, [-1, points.shape[1]])
    cross = tf.reshape(cross_covariance(kernel, points, rows), [-1, *sizes(targets)[:2]])
    return TargetBlocks(tf.transpose(cross, [1, 0, 2]), own)


def _covariance_of_gram(kernel: Kernel, draw: GramDraw, gram: TargetBlocks) -> TargetBlocks:
    features = None if gram.features is None else (draw.features, gram.features)
    inducing_diagonal = tf.reduce_sum(tf.square(draw.features), axis=-1)
    cross = gram_K_cross(kernel, gram.it, inducing_diagonal, gram.diagonal, features=features)
    if gram.are_single:
        return TargetBlocks(cross, gram_K_diag(kernel, gram.diagonal))
    return TargetBlocks(cross, gram_K(kernel, gram.tt))
