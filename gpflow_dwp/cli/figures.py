"""What a model makes of its inputs, and the figures of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.cli.errors import spared
from gpflow_dwp.cli.fit import FitData
from gpflow_dwp.cli.runs import FIGURES
from gpflow_dwp.data import Table
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.evaluation import RawUnits, plot_calibration, plot_learning_curve, plot_predictions
from gpflow_dwp.evaluation.predictions import INTERVAL, LabelPredictions, NumberPredictions, predict
from gpflow_dwp.evaluation.variance_shares import variance_shares
from gpflow_dwp.optional import import_optional

__all__ = ["effect_of", "relevances", "shares", "write_figures"]

_ROWS, _GRID, _DRAWS = 50, 40, 20
_BAND = f"{100 * INTERVAL:g}% interval"


def relevances(units: RawUnits, X: Array, encoder: ColumnEncoder, seed: int) -> dict[str, float]:
    """Return how far predictions move, by column, where its cells are exchanged between rows.

    That is the root mean square of the change of the mean, or of a class's probability, over the
    standard deviation of what is predicted (Breiman, Random Forests, 2001, permutes likewise). The
    most relevant column is the first.
    """
    rows = X[np.random.default_rng(seed).permutation(len(X))[:_ROWS]]
    blocks = [rows]
    for places in _places(encoder).values():
        other = rows.copy()
        other[:, places] = np.roll(rows, 1, axis=0)[:, places]
        blocks.append(other)
    found: Any = predict(units, np.concatenate(blocks), num_samples=_DRAWS, seed=seed)
    labels = isinstance(found, LabelPredictions)
    first, *others = np.split(found.probabilities if labels else found.mean[:, None], len(blocks))
    spread = float(np.sqrt(first.var(axis=0).sum())) or 1.0
    moves = [float(np.sqrt(np.square(other - first).mean(axis=0).sum())) for other in others]
    named = {name: move / spread for name, move in zip(encoder.columns, moves, strict=True)}
    return dict(sorted(named.items(), key=lambda pair: -pair[1]))


def shares(units: RawUnits, X: Array, encoder: ColumnEncoder) -> dict[str, float]:
    """Return what each column by itself, and all jointly, have of the variance of a model's mean.

    Empty where the model is no sum of such functions. The largest is the first.
    """
    found = variance_shares(units.model, units.to_model(X))
    if found is None:
        return {}
    single, joint = found
    named = {name: single[places].sum() for name, places in _places(encoder).items()}
    named["all jointly"] = joint.sum()
    return dict(sorted(named.items(), key=lambda pair: -pair[1]))


def effect_of(column: str, units: RawUnits, X: Array, encoder: ColumnEncoder) -> tuple[Array, Any]:
    """Return values of a column, [G], and predictions of them with the other inputs' medians.

    Of categories the values are their numbers.
    """
    places = _places(encoder)[column]
    if column in encoder.categories:
        values, inputs = np.arange(float(len(places))), np.eye(len(places))
    else:
        low, high = np.quantile(X[:, places[0]], [0.01, 0.99])
        values = np.linspace(low, high, _GRID)
        inputs = values[:, None]
    rows = np.tile(np.median(X, axis=0), [len(values), 1])
    rows[:, places] = inputs
    return values, predict(units, rows, num_samples=_DRAWS)


def _places(encoder: ColumnEncoder) -> dict[str, list[int]]:
    """The inputs that each column becomes."""
    counts = [len(encoder.categories.get(name, ("",))) for name in encoder.columns]
    ends = np.cumsum([0, *counts]).tolist()
    spans = zip(encoder.columns, ends[:-1], ends[1:], strict=True)
    return {name: [*range(start, end)] for name, start, end in spans}


def write_figures(
    run: Path,
    bounds: Array,
    annealing_steps: int,
    predictions: NumberPredictions | LabelPredictions | None,
    data: FitData,
    units: RawUnits,
    column: str,
) -> None:
    """Write the learning curve, pictures of predictions and the effect of a column as PNG.

    One that cannot be drawn is missing, with a warning.

    :param bounds: Bound per training row at each step, [T], in raw units.
    :param annealing_steps: When the weight of the log ratios reached 1.
    :param predictions: Of the test rows; None leaves out what is drawn of them.
    """
    learning_curve = partial(
        plot_learning_curve,
        np.arange(1, len(bounds) + 1),
        bounds,
        label="ELBO per datum (nats)",
        annealing_steps=annealing_steps,
    )
    draw: list[Callable[[], Any]] = [learning_curve, partial(_of_effect, column, units, data)]
    if predictions is not None:
        draw += [partial(each, predictions, data.test) for each in (_of_truth, _of_calibration)]
    for name, axes in zip(FIGURES, draw, strict=False):
        with spared(name):
            (run / name).parent.mkdir(exist_ok=True)
            axes().figure.savefig(run / name, dpi=120)


def _of_truth(predictions: NumberPredictions | LabelPredictions, test: Table) -> Any:
    name, classes = _plain(test.target_name), test.classes or ()
    if isinstance(predictions, NumberPredictions):
        means = predictions.mean, predictions.lower, predictions.upper
        axes = plot_predictions(test.Y[:, 0], *means, target=name, interval=_BAND)
    else:
        axes = _axes()
        import_optional("sklearn.metrics", "cli").ConfusionMatrixDisplay.from_predictions(
            test.Y[:, 0].astype(int),
            predictions.labels,
            labels=np.arange(len(classes)),
            display_labels=[_plain(label) for label in classes],
            ax=axes,
        )
    axes.set_title(f"{name}, test rows", fontsize="medium")
    return axes


def _of_calibration(predictions: NumberPredictions | LabelPredictions, test: Table) -> Any:
    if isinstance(predictions, NumberPredictions):
        axes = plot_calibration(np.asarray(predictions.below))
    else:
        axes = _axes()
        import_optional("sklearn.calibration", "cli").CalibrationDisplay.from_predictions(
            predictions.labels == test.Y[:, 0],
            predictions.probabilities.max(axis=1),
            pos_label=1,
            n_bins=10,
            strategy="quantile",
            name="share that is right",
            ax=axes,
        )
    axes.set_title(f"{_plain(test.target_name)}, test rows", fontsize="medium")
    return axes


def _of_effect(column: str, units: RawUnits, data: FitData) -> Any:
    values, predictions = effect_of(column, units, data.train.X, data.encoder)
    axes, categories = _axes(), data.encoder.categories.get(column)
    marker = "." if categories else ""
    if isinstance(predictions, LabelPredictions):
        for name, line in zip(data.test.classes or (), predictions.probabilities.T, strict=True):
            axes.plot(values, line, marker=marker, label=_plain(name))
        axes.set_ylabel("probability")
        axes.legend()
    else:
        axes.plot(values, predictions.mean, marker=marker)
        axes.fill_between(values, predictions.lower, predictions.upper, alpha=0.2)
        axes.set_ylabel(f"{_plain(data.test.target_name)}: mean and {_BAND}")
    if categories:
        axes.set_xticks(values, [_plain(name) for name in categories])
    axes.set_xlabel(f"{_plain(column)} (other inputs at their medians)")
    return axes


def _axes() -> Any:
    return import_optional("matplotlib.figure", "cli").Figure(layout="constrained").add_subplot()


def _plain(name: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")
