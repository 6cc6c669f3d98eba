"""The order of rows and columns in tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpflow_dwp.lab.comparison.models import MODELS
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRICS_IN_ORDER", "in_order"]

METRICS_IN_ORDER = tuple(
    sorted(
        dict.fromkeys(name for names in METRICS.values() for name in names),
        key=lambda name: name.endswith("_seconds"),
    )
)
_ORDERS = {
    "table": tuple(TABLES),
    "task": tuple(METRICS),
    "metric": METRICS_IN_ORDER,
    "label": tuple(MODELS),
}


def in_order(column: pd.Series) -> pd.Series:
    """What to sort a column by: regression first, times last, labels of our own after models."""
    if column.name not in _ORDERS:
        return column
    order = {name: f"{index:03}" for index, name in enumerate(_ORDERS[column.name])}
    return column.map(lambda name: order.get(name, f"999 {name}"))
