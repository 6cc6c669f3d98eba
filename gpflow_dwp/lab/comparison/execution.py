"""One cell of the comparison, from the table to its scores, in this process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpflow_dwp.lab.comparison.cell import ComparisonCell
from gpflow_dwp.lab.comparison.models import MODELS
from gpflow_dwp.lab.comparison.scores import classification_scores, regression_scores
from gpflow_dwp.lab.comparison.tables import TABLES, load_split

__all__ = ["run_comparison_cell"]


def run_comparison_cell(
    cell: ComparisonCell | Mapping[str, Any],
    *,
    uci_folder: str | Path | None = None,
    **_: object,
) -> dict[str, float]:
    """Fit the model of a cell, and judge it on the test rows.

    :param cell: What to run; also as :meth:`ComparisonCell.to_dict` gives it.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :return: By the names of :data:`METRICS`; see :func:`regression_scores` and
        :func:`classification_scores`. ``fit_seconds`` are of the processor, compilation included;
        ``predict_seconds`` are those of means and 90% intervals, or of probabilities, of all test
        rows.
    :raises ImportError: If the model's package, or the table's, is not installed.
    """
    cell = cell if isinstance(cell, ComparisonCell) else ComparisonCell.from_dict(cell)
    model, task = MODELS[cell.model], TABLES[cell.table].task
    split = load_split(cell.table, cell.split, uci_folder=uci_folder)
    model.load()  # what is imported later would count as fitting
    start = time.process_time()
    predict = model.fits[task](split.X_train, split.y_train, cell.split, **dict(cell.settings))
    fitted = time.process_time()
    prediction = predict(split.X_test)
    if task == "regression":
        prediction.mean()
        prediction.quantiles(np.array([0.05, 0.95]))
    predicted = time.process_time()
    score = regression_scores if task == "regression" else classification_scores
    return {
        **score(prediction, split.y_test),
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }
