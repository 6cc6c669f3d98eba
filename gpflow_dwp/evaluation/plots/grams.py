"""Gram matrices: what representation a model learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from gpflow_dwp.evaluation.plots._drawing import new_figure
from gpflow_dwp.kernels import gram_K
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_instance, check_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["plot_gram_matrices", "plot_layer_grams"]


def plot_gram_matrices(
    grams: Sequence[npt.ArrayLike],
    titles: Sequence[str],
    axes: Sequence[Axes] | None = None,
    *,
    x: npt.ArrayLike | None = None,
) -> list[Axes]:
    """Gram matrices side by side, on one colour scale.

    :param grams: Matrices, each [M, M].
    :param titles: A title for each.
    :param axes: Axes to draw on, one for each matrix; by default those of a new figure.
    :param x: Inputs of the points, increasing, [M], for both axes; None for the points' numbers.
    :return: The axes of the matrices.
    :raises ValueError: If there is no matrix, one is not square, the numbers of matrices, titles
        and axes differ, or ``x`` is not an increasing vector of as many numbers as points.
    """
    matrices = [np.asarray(gram, np.float64) for gram in grams]
    given = len(matrices) if axes is None else len(axes)
    if not matrices or not len(matrices) == len(titles) == given:
        raise ValueError(
            "there must be as many titles and axes as matrices, and at least one, got "
            f"{len(matrices)} matrices, {len(titles)} titles and {given} axes"
        )
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a Gram matrix must have shape [M, M], got {list(matrix.shape)}")
    inputs = None if x is None else np.asarray(x, np.float64)
    if inputs is not None and not (
        all(inputs.shape == matrix.shape[:1] for matrix in matrices) and (np.diff(inputs) > 0).all()
    ):
        raise ValueError(
            f"x must be an increasing vector of {len(matrices[0])} inputs, got shape "
            f"{list(inputs.shape)}"
        )
    if axes is None:
        figure = new_figure((2.8 * len(matrices) + 1.0, 3.3))
        axes = list(figure.subplots(1, len(matrices), squeeze=False)[0])
    low, high = min(m.min() for m in matrices), max(m.max() for m in matrices)
    colours: dict[str, Any] = {"cmap": "viridis", "vmin": min(low, 0.0), "vmax": high}
    if low < -0.05 * high:
        bound = max(high, -low)
        colours = {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound}
    for ax, matrix, title in zip(axes, matrices, titles, strict=True):
        if inputs is None:
            image: Any = ax.imshow(matrix, interpolation="nearest", **colours)
        else:
            image = ax.pcolormesh(inputs, inputs, matrix, shading="nearest", **colours)
            ax.set(aspect="equal", ylim=ax.get_ylim()[::-1])
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel("point" if inputs is None else "x")
        ax.locator_params(integer=inputs is None, nbins=5)
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

    :param model: A deep kernel process with at least one hidden layer.
    :param axes: Axes to draw on, 2 L for L hidden layers, the posterior's first; by default those
        of a new figure.
    :param num_samples: Draws of each mean.
    :param order: Numbers of the inducing points, in the order in which they are shown, [M]; None
        to show them over the input if there is one, else in the order of the leading eigenvector
        of the top layer's posterior mean, which brings points together that the model takes to be
        alike.
    :param seed: Seed of the draws.
    :return: The axes, the posterior's first.
    :raises ValueError: If ``model`` is no deep kernel process or has no hidden layer, ``order``
        does not hold every point once, or there are not 2 L axes.
    """
    check_instance(DeepKernelProcess, model=model)
    num_layers = len(model.hidden_layers)
    if not num_layers:
        raise ValueError("model must have at least one hidden layer, got depth 1.")
    check_integers(num_samples=num_samples)
    posterior = [
        gram.numpy().mean(axis=0)
        for gram in model.posterior(num_samples, seed=seed).gram_matrices()
    ]
    prior = [gram.numpy().mean(axis=0) for gram in _draw_prior(model, num_samples, seed)]
    Z = model.inducing_variable.Z.numpy()
    is_over_input = order is None and Z.shape[1] == 1 and len(np.unique(Z)) == len(Z)
    if order is None:
        order = np.argsort(Z[:, 0] if Z.shape[1] == 1 else np.linalg.eigh(posterior[-1])[1][:, -1])
    points = np.asarray(order)
    if not np.array_equal(np.sort(points), np.arange(len(posterior[0]))):
        raise ValueError(f"order must hold 0 to {len(posterior[0]) - 1} once each, got {points}.")
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
    points = tf.convert_to_tensor(model.inducing_variable.Z)
    covariance = model.layers[0].kernel(points)
    covariance = tf.repeat(covariance[None], num_samples, axis=0)
    seeds = split_seed(as_seed(seed), len(model.layers))
    grams = []
    for layer, above, layer_seed in zip(model.hidden_layers, model.layers[1:], seeds, strict=False):
        grams.append(layer.sample_prior(covariance, layer_seed))
        covariance = gram_K(above.kernel, grams[-1])
    return grams
