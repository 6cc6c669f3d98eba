"""What a model makes of its inputs: which matter, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gpflow.kernels import ArcCosine, Combination, Kernel

from gpflow_dwp.evaluation.plots._drawing import (
    BLACK,
    BLUE,
    COLOURS,
    GREY,
    Array,
    axes_or_new,
    legend_below,
    named,
)
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.validation import check_instance, check_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_partial_dependence", "plot_relevance"]


def plot_relevance(
    model: VariationalModel,
    ax: Axes | None = None,
    *,
    feature_names: Sequence[str] | None = None,
) -> Axes:
    """Relevance of each input to the first kernel, the most relevant one on top.

    The relevance of an input is the inverse of its lengthscale (for an arc-cosine kernel, the root
    of its weight variance): how fast the first layer changes along it, per unit of the model's
    inputs, so that inputs can be compared if they are standardised; 0 for one that the kernel does
    not see. It is no measure of how much an input adds to predictions.

    :param model: A model whose first kernel, or a part of it, has one lengthscale per input.
    :param ax: Axes to draw on; by default those of a new figure.
    :param feature_names: Names of the inputs; None for their numbers.
    :return: The axes.
    :raises ValueError: If no kernel has one lengthscale per input, or the number of names is not
        that of the inputs.
    """
    check_instance(VariationalModel, model=model)
    kernel = getattr(model.layers[0], "kernel", None)
    points = getattr(
        model, "inducing_variable", getattr(model.layers[0], "inducing_variable", None)
    )
    num_inputs = 0 if points is None else points.Z.shape[1]  # latent variables, too
    found = [] if kernel is None else list(_relevances(kernel, num_inputs))
    if not found or num_inputs < 2:
        raise ValueError(
            "the model's first kernel must have one lengthscale per input, as it has where "
            "select_model or an estimator is told which kernel to take."
        )
    names = [f"input {i + 1}" for i in range(num_inputs)]
    if feature_names is not None:
        names = [str(name) for name in feature_names]
    if len(names) != num_inputs:
        raise ValueError(f"feature_names must name {num_inputs} inputs, got {len(names)} names.")
    order = np.argsort(np.max([values for _, values in found], axis=0))
    ax = axes_or_new(ax, size=(5.6, 1.2 + 0.3 * num_inputs))
    height = 0.8 / len(found)
    for index, (name, values) in enumerate(found):
        offset = (0.5 * (len(found) - 1) - index) * height
        colour = COLOURS[index % len(COLOURS)]
        places = np.arange(num_inputs) + offset
        ax.barh(places, values[order], height=0.9 * height, color=colour, label=name)
    ax.set_yticks(np.arange(num_inputs), [names[i].replace("$", r"\$") for i in order])
    if len(found) > 1:
        legend_below(ax)
    ax.tick_params(axis="y", length=0)
    return named(ax, "relevance (1 / lengthscale)", "")


def plot_partial_dependence(
    model: Any,
    X: npt.ArrayLike,
    feature: int,
    ax: Axes | None = None,
    *,
    grid: npt.ArrayLike | None = None,
    num_rows: int = 30,
    output: int = -1,
    feature_name: str | None = None,
    seed: int = 0,
) -> Axes:
    """How predictions depend on one input, with the other inputs as the data have them.

    The thick line is the mean over the rows (Friedman, 2001), thin lines are single rows: where
    they are not parallel, the input interacts with others. Marks at the bottom are deciles of the
    data; far from them the model answers for inputs that it has not seen.

    :param model: A model, or an estimator with ``predict_proba`` or ``predict``.
    :param X: Inputs that stand for the data, in the model's units, [N, D].
    :param feature: Number of the input, from 0.
    :param ax: Axes to draw on; by default those of a new figure.
    :param grid: Values of the input, [G]; None for 40 between its smallest and its largest.
    :param num_rows: At most so many rows, drawn at random.
    :param output: Number of the output, or of the class.
    :param feature_name: Name of the input; None for its number.
    :param seed: For the choice of rows and the draws of predictions.
    :return: The axes.
    :raises ValueError: If ``X`` is not [N, D] or there is no such input.
    """
    rows = np.asarray(X, np.float64)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"X must have shape [N, D] with N > 0, got {list(rows.shape)}.")
    check_integers(at_least=0, feature=feature)
    check_integers(num_rows=num_rows)
    if feature >= rows.shape[1]:
        raise ValueError(f"feature must be less than {rows.shape[1]}, got {feature}.")
    column = rows[:, feature]
    values = np.linspace(column.min(), column.max(), 40) if grid is None else np.asarray(grid)
    if len(rows) > num_rows:
        chosen = np.random.default_rng(seed).choice(len(rows), num_rows, replace=False)
        rows = rows[np.sort(chosen)]
    inputs = np.repeat(rows, len(values), axis=0)
    inputs[:, feature] = np.tile(values, len(rows))
    predictions = _mean_prediction(model, seed)(inputs)
    curves = predictions.reshape(len(rows), len(values), -1)[..., output]

    ax = axes_or_new(ax, size=(5.2, 3.8))
    for index, curve in enumerate(curves):
        label = "single rows" if index == 0 else None
        ax.plot(values, curve, color=GREY, alpha=0.4, linewidth=0.8, label=label)
    ax.plot(values, curves.mean(axis=0), color=BLUE, linewidth=2.2, label="mean over rows")
    deciles = np.quantile(column, np.linspace(0.1, 0.9, 9))
    transform = ax.get_xaxis_transform()
    ax.vlines(deciles, 0.0, 0.03, color=BLACK, linewidth=1, transform=transform)
    legend_below(ax)
    name = f"input {feature + 1}" if feature_name is None else feature_name
    return named(ax, name, "predicted mean")


def _relevances(kernel: Kernel, num_inputs: int) -> Iterator[tuple[str, Array]]:
    """Every part of a kernel that weighs each of its inputs, with the weights, [D]."""
    if isinstance(kernel, Combination):
        for part in kernel.kernels:
            yield from _relevances(part, num_inputs)
        return
    if isinstance(kernel, ArcCosine):
        weights = np.sqrt(np.atleast_1d(kernel.weight_variances.numpy()))
    elif hasattr(kernel, "lengthscales"):
        weights = 1.0 / np.atleast_1d(kernel.lengthscales.numpy())
    else:
        return
    active = np.arange(num_inputs)[kernel.active_dims]
    if len(weights) == len(active):
        relevance = np.zeros(num_inputs)
        relevance[active] = weights
        yield type(kernel).__name__, relevance


def _mean_prediction(model: Any, seed: int) -> Callable[[Array], Array]:
    if isinstance(model, VariationalModel):
        posterior = model.posterior(seed=seed)
        return lambda inputs: posterior.predict_y(inputs)[0].numpy()
    predict = getattr(model, "predict_proba", None) or getattr(model, "predict", None)
    if predict is None:
        raise ValueError(f"model must be a model or an estimator, got {type(model).__name__}.")
    return lambda inputs: np.asarray(predict(inputs), np.float64)
