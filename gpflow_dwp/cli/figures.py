"""The figures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.predictions import (
    INTERVAL,
    ClassificationPredictions,
    Predictions,
    RegressionPredictions,
)
from gpflow_dwp.data import Table
from gpflow_dwp.evaluation import (
    plot_calibration,
    plot_learning_curve,
    plot_predictions,
    plot_reliability,
)
from gpflow_dwp.optional import import_optional

__all__ = ["write_figures"]


def write_figures(
    directory: Path,
    elbo: npt.NDArray[np.float64],
    predictions: Predictions,
    test: Table,
    *,
    annealing_steps: int = 0,
) -> None:
    """Write the learning curve and pictures of the predictions as PNG.

    :param directory: Where to; made here.
    :param elbo: Bound per training row at each step, [T].
    :param predictions: Predictions of the test rows.
    :param test: The test rows.
    :param annealing_steps: When the weight of the log ratios had grown to 1.
    """
    directory.mkdir()
    axes = plot_learning_curve(
        np.arange(1, len(elbo) + 1),
        elbo,
        label="ELBO per datum (nats)",
        annealing_steps=annealing_steps,
    )
    _save(axes, directory / "learning_curve.png")
    if isinstance(predictions, RegressionPredictions):
        name = _plain(test.target_name)
        axes = plot_predictions(
            *(test.Y[:, 0], predictions.mean, predictions.lower, predictions.upper),
            target=f"{name}, test rows",
            interval=f"{100 * INTERVAL:g}% interval",
        )
        _save(axes, directory / "predictions.png")
        if predictions.probability_below is not None:
            axes = plot_calibration(predictions.probability_below)
            axes.set_title(f"{name}, test rows", fontsize="medium")
            _save(axes, directory / "calibration.png")
    elif isinstance(predictions, ClassificationPredictions):
        _write_label_figures(directory, predictions, test)


def _write_label_figures(
    directory: Path, predictions: ClassificationPredictions, test: Table
) -> None:
    metrics = import_optional("sklearn.metrics", "cli")
    labels = test.Y[:, 0].astype(int)
    axes = _new_axes()
    metrics.ConfusionMatrixDisplay.from_predictions(
        labels,
        predictions.labels,
        labels=np.arange(len(test.classes or ())),
        display_labels=[_plain(name) for name in test.classes or ()],
        ax=axes,
    )
    axes.set_title(f"{_plain(test.target_name)}: test rows")
    _save(axes, directory / "predictions.png")
    axes = plot_reliability(predictions.probabilities.max(axis=1), predictions.labels == labels)
    _save(axes, directory / "calibration.png")


def _plain(name: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")


def _new_axes() -> Any:
    figure = import_optional("matplotlib.figure", "cli").Figure(layout="constrained")
    return figure.add_subplot()


def _save(axes: Any, path: Path) -> None:
    axes.figure.savefig(path, dpi=120)
