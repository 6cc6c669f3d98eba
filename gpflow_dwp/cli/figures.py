"""The figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import Table
from gpflow_dwp.evaluation import (
    plot_calibration,
    plot_learning_curve,
    plot_predictions,
    plot_reliability,
)
from gpflow_dwp.evaluation.predictions import INTERVAL, LabelPredictions, NumberPredictions
from gpflow_dwp.optional import import_optional

__all__ = ["write_figures"]


def write_figures(
    directory: Path,
    elbo: Array,
    predictions: NumberPredictions | LabelPredictions,
    test: Table,
    *,
    annealing_steps: int = 0,
    effects: tuple[str, Sequence[str] | None, Array, Any, dict[str, float]] | None = None,
) -> None:
    """Write the learning curve and pictures of the predictions as PNG.

    :param directory: Where to; made here.
    :param elbo: Bound per training row at each step, [T].
    :param annealing_steps: When the weight of the log ratios had grown to 1.
    :param effects: The most relevant column, its categories, values and predictions of them, and
        the relevance of all columns; None for no figures of them.
    """
    curve = plot_learning_curve(
        np.arange(1, len(elbo) + 1),
        elbo,
        label="ELBO per datum (nats)",
        annealing_steps=annealing_steps,
    )
    figures: dict[str, Any] = {"learning_curve": curve}
    if isinstance(predictions, LabelPredictions):
        figures |= _of_labels(predictions, test)
    else:
        title = f"{_plain(test.target_name)}, test rows"
        figures["predictions"] = plot_predictions(
            *(test.Y[:, 0], predictions.mean, predictions.lower, predictions.upper),
            target=title,
            interval=f"{100 * INTERVAL:g}% interval",
        )
        if predictions.below is not None:
            figures["calibration"] = plot_calibration(predictions.below)
            figures["calibration"].set_title(title, fontsize="medium")
    if effects is not None:
        figures |= _of_inputs(test, *effects)
    directory.mkdir(exist_ok=True)
    for name, axes in figures.items():
        axes.figure.savefig(directory / f"{name}.png", dpi=120)


def _of_labels(predictions: LabelPredictions, test: Table) -> dict[str, Any]:
    metrics = import_optional("sklearn.metrics", "cli")
    labels, classes = test.Y[:, 0].astype(int), test.classes or ()
    figure = import_optional("matplotlib.figure", "cli").Figure(layout="constrained")
    axes = figure.add_subplot()
    metrics.ConfusionMatrixDisplay.from_predictions(
        labels,
        predictions.labels,
        labels=np.arange(len(classes)),
        display_labels=[_plain(name) for name in classes],
        ax=axes,
    )
    axes.set_title(f"{_plain(test.target_name)}: test rows")
    right = predictions.labels == labels
    return {
        "predictions": axes,
        "calibration": plot_reliability(predictions.probabilities.max(axis=1), right),
    }


def _of_inputs(
    test: Table,
    column: str,
    categories: Sequence[str] | None,
    values: Array,
    predictions: NumberPredictions | LabelPredictions,
    relevance: dict[str, float],
) -> dict[str, Any]:
    """The relevance of each column, and the effect of the most relevant one with its band."""
    figure = import_optional("matplotlib.figure", "cli").Figure
    names = [_plain(name) for name in relevance]
    bars = figure(figsize=(5.6, 1.2 + 0.3 * len(names)), layout="constrained").add_subplot()
    bars.barh(names[::-1], [*relevance.values()][::-1])
    bars.set_xlabel("change of predictions where rows exchange the input (standard deviations)")
    axes = figure(layout="constrained").add_subplot()
    if isinstance(predictions, LabelPredictions):
        for name, line in zip(test.classes or (), predictions.probabilities.T, strict=True):
            axes.plot(values, line, marker="." if categories else "", label=_plain(name))
        axes.set_ylabel("probability")
        axes.legend()
    else:
        axes.plot(values, predictions.mean, marker="." if categories else "")
        axes.fill_between(values, predictions.lower, predictions.upper, alpha=0.2)
        axes.set_ylabel(f"{_plain(test.target_name)}: mean and {100 * INTERVAL:g}% interval")
    if categories:
        axes.set_xticks(values, [_plain(name) for name in categories])
    axes.set_xlabel(f"{_plain(column)} (other inputs at their medians)")
    return {"relevance": bars, "effect": axes}


def _plain(name: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")
