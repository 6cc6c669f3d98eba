"""Records of an invented comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import TABLES
from gpflow_dwp.lab.study.results import Record

__all__ = ["compared"]


def compared(
    table: str,
    label: str,
    scores: Sequence[float],
    *,
    first_split: int = 0,
    settings: Mapping[str, Any] | None = None,
    **metrics: float,
) -> list[Record]:
    """A finished cell for each score, which is that of every metric that is not given."""
    model = label.split("-d")[0]
    records = []
    for split, score in enumerate(scores, start=first_split):
        own = dict(settings or {})
        cell = {"table": table, "model": model, "label": label, "split": split}
        cell |= {"settings": own, "defaults": {"depth": 3} if model == "dwp" else {}}
        values = {**dict.fromkeys(METRICS[TABLES[table].task], score), **metrics}
        provenance = {"machine": "a machine", "commit": "0123456"}
        key = f"{table} {label} {split} {sorted(own.items())}"
        records.append(Record(key, cell, "finished", None, values, provenance))
    return records
