"""What a model makes of its inputs: how relevant each is, and the effect of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import ColumnEncoder
from gpflow_dwp.evaluation.predictions import LabelPredictions, predict
from gpflow_dwp.evaluation.raw_units import RawUnits

__all__ = ["effect_of", "relevances"]

_ROWS, _GRID, _DRAWS = 50, 40, 20


def relevances(units: RawUnits, X: Array, encoder: ColumnEncoder, seed: int) -> dict[str, float]:
    """Return how far predictions move, by column, where its cells are exchanged between rows.

    That is the root mean square of the change of the mean, or of a class's probability, over the
    standard deviation of what is predicted (Breiman, Random Forests, 2001, permutes likewise).

    :param X: Rows, in raw units, [N, D].
    :return: The most relevant column first.
    """
    rng = np.random.default_rng(seed)
    rows = X[rng.permutation(len(X))[:_ROWS]]
    exchanged = []
    for places in _places(encoder).values():
        other = rows.copy()
        other[:, places] = np.roll(rows, 1, axis=0)[:, places]
        exchanged.append(other)
    found = _centres(units, np.concatenate([rows, *exchanged]), seed)
    first, *others = np.split(found, len(exchanged) + 1)
    spread = float(np.sqrt(first.var(axis=0).sum())) or 1.0
    moves = [float(np.sqrt(np.square(other - first).mean(axis=0).sum())) for other in others]
    named = {name: move / spread for name, move in zip(encoder.columns, moves, strict=True)}
    return dict(sorted(named.items(), key=lambda pair: -pair[1]))


def effect_of(
    column: str, units: RawUnits, X: Array, encoder: ColumnEncoder, seed: int
) -> tuple[Array, Any]:
    """Return values of a column, [G], and predictions of them with the other inputs' medians.

    :param column: A column of numbers or times, or of categories, whose number is the value.
    """
    (places,) = [places for name, places in _places(encoder).items() if name == column]
    if len(places) > 1 or column in encoder.categories:
        values = np.arange(len(places), dtype=np.float64)
        inputs = np.eye(len(places))
    else:
        low, high = np.quantile(X[:, places[0]], [0.01, 0.99])
        values = np.linspace(low, high, _GRID)
        inputs = values[:, None]
    rows = np.tile(np.median(X, axis=0), [len(values), 1])
    rows[:, places] = inputs
    return values, predict(units, rows, num_samples=_DRAWS, seed=seed)


def _places(encoder: ColumnEncoder) -> dict[str, list[int]]:
    """The inputs that each column becomes."""
    found: dict[str, list[int]] = {}
    start = 0
    for name in encoder.columns:
        count = len(encoder.categories.get(name, ("",)))
        found[name] = list(range(start, start + count))
        start += count
    return found


def _centres(units: RawUnits, X: Array, seed: int) -> Array:
    """Means, [N, 1], or probabilities, [N, C]."""
    predictions = predict(units, X, num_samples=_DRAWS, seed=seed)
    if isinstance(predictions, LabelPredictions):
        return predictions.probabilities
    return predictions.mean[:, None]
