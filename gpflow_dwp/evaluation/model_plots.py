"""Figures of a model: its training, and its Gram matrices.

Axes and vectors are as in :mod:`gpflow_dwp.evaluation.plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.plots import (
    BLUE,
    COLOURS,
    GREY,
    axes_or_new,
    legend_below,
    named,
    new_figure,
    vectors,
)
from gpflow_dwp.kernels import gram_K
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_instance, check_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_gram_matrices",
    "plot_layer_divergences",
    "plot_layer_grams",
    "plot_learning_curve",
]

_MOVING_AVERAGE_FROM = 100  # recorded steps; below, the curve itself is clear enough


def plot_learning_curve(
    steps: npt.ArrayLike,
    elbo: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    label: str = "ELBO (nats)",
    annealing_steps: int = 0,
) -> Axes:
    """The bound over training. The axis shows where it ends, not the depth from which it came.

    :param steps: Steps at which the bound was recorded, increasing, [K].
    :param elbo: Bound of each step, [K].
    :param label: What the bound is and its unit, such as "ELBO per datum (nats)".
    :param annealing_steps: When the weight of the log ratios had grown to 1, which is marked; 0 for
        no mark.
    """
    x, y = vectors(steps=steps, elbo=elbo)
    ax = axes_or_new(ax)
    if (window := _window(len(x))) > 1:
        ax.plot(x, y, color=BLUE, alpha=0.3, linewidth=0.8, label="each record")
        ax.plot(*_smooth(x, y), color=BLUE, label=f"mean of {window} records")
    else:
        ax.plot(x, y, color=BLUE, marker=".", label="each record")
    if 0 < annealing_steps < x[-1]:
        ax.axvline(annealing_steps, color=GREY, linestyle=":", label="annealing ends")
    legend_below(ax, ncols=3)
    late = y[len(y) // 10 :][np.isfinite(y[len(y) // 10 :])]
    if len(late) > 1 and late.max() > late.min():
        margin = 0.05 * (late.max() - late.min())
        ax.set_ylim(late.min() - margin, np.max(y[np.isfinite(y)]) + margin)
    ax.margins(x=0.02)
    return named(ax, "training step", label)


def plot_layer_divergences(
    log_ratios: npt.ArrayLike, ax: Axes | None = None, *, names: Sequence[str] | None = None
) -> Axes:
    """What each layer's posterior costs over training: its divergence from the prior.

    A layer whose curve falls to zero and stays there has fallen back to its prior, and does
    nothing. The scale is logarithmic where all that is drawn is positive.

    :param log_ratios: Each layer's log P - log Q at each step, bottom first, in nats, [T, L], such
        as ``TrainingHistory.log_ratios``.
    :param names: Names of the layers, [L]; None for their numbers.
    """
    divergences = -np.asarray(log_ratios, np.float64)
    if divergences.ndim != 2 or not divergences.size:
        raise ValueError(f"log_ratios must have shape [T, L], got {list(divergences.shape)}.")
    num_steps, num_layers = divergences.shape
    labels = names or [f"layer {i + 1}" for i in range(num_layers)]
    ax = axes_or_new(ax)
    for index, (label, column) in enumerate(zip(labels, divergences.T, strict=True)):
        curve = _smooth(np.arange(1.0, num_steps + 1), column)
        ax.plot(*curve, color=COLOURS[index % len(COLOURS)], label=label)
    if all((np.asarray(line.get_ydata(), np.float64) > 0.0).all() for line in ax.lines):
        ax.set_yscale("log")
    ax.margins(x=0.02)
    legend_below(ax, ncols=min(4, num_layers))
    return named(ax, "training step", "divergence from the prior (nats)")


def plot_gram_matrices(
    grams: Sequence[npt.ArrayLike],
    titles: Sequence[str],
    axes: Sequence[Axes] | None = None,
    *,
    x: npt.ArrayLike | None = None,
) -> list[Axes]:
    """Gram matrices side by side, on one colour scale.

    :param grams: Matrices, each [M, M], at least one.
    :param titles: A title for each.
    :param axes: Axes to draw on, one for each matrix.
    :param x: Inputs of the points, increasing, [M], for both axes; None for the points' numbers.
    """
    matrices = [np.asarray(gram, np.float64) for gram in grams]
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a Gram matrix must have shape [M, M], got {list(matrix.shape)}")
    if axes is None:
        figure = new_figure((2.8 * len(matrices) + 1.0, 3.3))
        axes = list(figure.subplots(1, len(matrices), squeeze=False)[0])
    low, high = min(m.min() for m in matrices), max(m.max() for m in matrices)
    colours: dict[str, Any] = {"cmap": "viridis", "vmin": min(low, 0.0), "vmax": high}
    if low < -0.05 * high:
        bound = max(high, -low)
        colours = {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound}
    for ax, matrix, title in zip(axes, matrices, titles, strict=True):
        if x is None:
            image: Any = ax.imshow(matrix, interpolation="nearest", **colours)
        else:
            image = ax.pcolormesh(x, x, matrix, shading="nearest", **colours)
            ax.set(aspect="equal", ylim=ax.get_ylim()[::-1])
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel("point" if x is None else "x")
        ax.locator_params(integer=x is None, nbins=5)
    axes[0].set_ylabel(axes[0].get_xlabel())
    axes[0].figure.colorbar(image, ax=list(axes), shrink=0.8, label="inner product")
    return list(axes)


def plot_layer_grams(
    model: DeepKernelProcess,
    axes: Sequence[Axes] | None = None,
    *,
    num_samples: int = 100,
    order: npt.ArrayLike | None = None,
    seed: int = 0,
) -> list[Axes]:
    """Every hidden layer's Gram matrix of the inducing points: posterior above, prior below.

    Each picture is a mean over draws. The prior is the one with the model's present kernels, drawn
    from the bottom up; what the posterior has and the prior has not is what the model learned from
    the data beyond its kernels. The two matrices of a layer have one colour scale.

    :param model: A deep kernel process with L hidden layers, at least one.
    :param axes: Axes to draw on, 2 L, the posterior's first.
    :param num_samples: Draws of each mean.
    :param order: Numbers of the inducing points, in the order in which they are shown, [M]; None
        to show them over the input if there is one, else in the order of the leading eigenvector
        of the top layer's posterior mean, which brings points together that the model takes to be
        alike.
    :param seed: Seed of the draws.
    """
    check_instance(DeepKernelProcess, model=model)
    check_integers(num_samples=num_samples)
    num_layers = len(model.hidden_layers)
    if not num_layers:
        raise ValueError("model must have at least one hidden layer, got depth 1.")
    draws = (
        model.posterior(num_samples, seed=seed).gram_matrices(),
        _draw_prior(model, num_samples, seed),
    )
    posterior, prior = ([gram.numpy().mean(axis=0) for gram in grams] for grams in draws)
    Z = model.inducing_variable.Z.numpy()
    is_over_input = order is None and Z.shape[1] == 1 and len(np.unique(Z)) == len(Z)
    if order is None:
        order = np.argsort(Z[:, 0] if Z.shape[1] == 1 else np.linalg.eigh(posterior[-1])[1][:, -1])
    points = np.asarray(order)
    if axes is None:
        figure = new_figure((3.6 * num_layers, 6.0))
        axes = list(figure.subplots(2, num_layers, squeeze=False).ravel())
    if len(axes) != 2 * num_layers:
        raise ValueError(f"axes must hold {2 * num_layers} axes, got {len(axes)}.")
    for index in range(num_layers):
        pair = [axes[index], axes[num_layers + index]]
        titles = [f"layer {index + 1}, {what}" for what in ("posterior", "prior")]
        grams = [gram[index][np.ix_(points, points)] for gram in (posterior, prior)]
        plot_gram_matrices(grams, titles, pair, x=Z[points, 0] if is_over_input else None)
        pair[1].set_ylabel(pair[1].get_xlabel())
    return list(axes)


def _draw_prior(model: DeepKernelProcess, num_samples: int, seed: int) -> list[tf.Tensor]:
    """Draws of every hidden layer's Gram matrix from the prior, bottom first, [S, M, M]."""
    covariance = model.layers[0].kernel(tf.convert_to_tensor(model.inducing_variable.Z))
    covariance = tf.repeat(covariance[None], num_samples, axis=0)
    seeds = split_seed(as_seed(seed), len(model.layers))
    grams = []
    for layer, above, layer_seed in zip(model.hidden_layers, model.layers[1:], seeds, strict=False):
        grams.append(layer.sample_prior(covariance, layer_seed))
        covariance = gram_K(above.kernel, grams[-1])
    return grams


def _window(num_records: int) -> int:
    """The length of moving averages."""
    return max(1, num_records // 50) if num_records >= _MOVING_AVERAGE_FROM else 1


def _smooth(x: Array, y: Array) -> tuple[Array, Array]:
    window = _window(len(x))
    smooth = np.convolve(y, np.full(window, 1.0 / window), mode="valid")
    return x[window // 2 :][: len(smooth)], smooth
