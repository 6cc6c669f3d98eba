"""The numbers of a comparison: means over splits, paired differences to the best, tables won."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gpflow_dwp.lab.comparison.models import COMPARED_MODELS
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import TABLES
from gpflow_dwp.lab.study.frame import sort_key
from gpflow_dwp.lab.study.results import Record

__all__ = ["comparison_frame", "comparison_scores", "in_order", "tables_won"]

_IN_ORDER = sorted(
    dict.fromkeys(name for names in METRICS.values() for name in names),
    key=lambda name: name.endswith("_seconds"),
)
_UNRANKED = ("coverage_90", "fit_seconds", "predict_seconds")
_PLACE = ["task", "metric", "table"]

in_order = sort_key(table=TABLES, task=METRICS, metric=_IN_ORDER, label=COMPARED_MODELS)
"""What to sort columns by: regression first, times last, labels of our own after models."""


def comparison_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row for each finished cell, of which the later counts where one was run twice.

    That is so where a label has been used for other settings, or defaults have changed.

    :return: Columns ``table``, ``task``, ``label``, ``split`` and the metrics of both tasks, NaN
        where a task has others; rows in the order of tables, labels and splits.
    :raises ValueError: If no cell is finished.
    """
    cell = ["table", "label", "split"]
    rows = [
        {**{name: record.cell[name] for name in cell}, **(record.metrics or {})}
        for record in records
        if record.status == "finished"
    ]
    if not rows:
        raise ValueError("records must hold at least one finished cell, got none.")
    frame = pd.DataFrame(rows).drop_duplicates(cell, keep="last")
    frame.insert(1, "task", frame["table"].map({name: t.task for name, t in TABLES.items()}))
    return frame.sort_values(cell, key=in_order, ignore_index=True)


def comparison_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over splits, and paired differences to the best model of each table.

    The best, one or several, has the lowest mean of those that have been run on the most splits.
    Differences are taken split by split, on the splits that both have, so that the splits' own
    difficulty, which is most of the spread of a mean, drops out. A score that is not a number
    counts as infinite.

    :param frame: As :func:`comparison_frame` gives it.
    :return: A row for each metric, table and label: ``task``, ``splits``, ``mean`` and its
        ``standard_error``, mean ``difference`` to the best and its paired
        ``difference_standard_error`` (NaN from one split), ``is_best``, and ``among_best``: best,
        or within one paired standard error of it. Coverage and times have no best.
    """
    present = [metric for metric in _IN_ORDER if metric in frame.columns]
    long = frame.melt(["table", "task", "label", "split"], present, "metric")
    known = pd.DataFrame([(t, name) for t, names in METRICS.items() for name in names])
    long = long.merge(known.set_axis(["task", "metric"], axis=1))
    long["value"] = long["value"].fillna(np.inf)
    each, by = long.groupby([*_PLACE, "label"])["value"], [long[name] for name in _PLACE]
    splits, mean = each.transform("size"), each.transform("mean")
    most = splits == splits.groupby(by).transform("max")
    long["is_best"] = most & (mean == mean.where(most).groupby(by).transform("min"))
    best = long[long["is_best"]]
    best = best[best["label"] == best.groupby(_PLACE)["label"].transform("min")]
    best = best[[*_PLACE, "split", "value"]]
    long = long.merge(best, how="left", on=[*_PLACE, "split"], suffixes=("", "_of_best"))
    with np.errstate(invalid="ignore"):  # infinity less infinity
        long["difference"] = long["value"] - long["value_of_best"]
        scores = long.groupby([*_PLACE, "label"]).agg(
            splits=("value", "size"),
            mean=("value", "mean"),
            standard_error=("value", "sem"),
            difference=("difference", "mean"),
            difference_standard_error=("difference", "sem"),
            is_best=("is_best", "first"),
        )
    scores = scores.reset_index().sort_values([*_PLACE, "label"], key=in_order, ignore_index=True)
    ranked = ~scores["metric"].isin(_UNRANKED)
    within = scores["difference"] <= scores["difference_standard_error"]
    scores["among_best"] = ranked & (scores["is_best"] | within)
    scores["is_best"] &= ranked
    scores.loc[~ranked, ["difference", "difference_standard_error"]] = np.nan
    return scores


def tables_won(scores: pd.DataFrame) -> pd.DataFrame:
    """How many tables each model wins.

    :param scores: As :func:`comparison_scores` gives them.
    :return: A row for each task, metric that has a best, and label: ``tables`` where it was
        compared with another model, ``best`` and ``among_best``, in how many of them it is.
    """
    by = ["task", "metric", "label"]
    ranked = scores[~scores["metric"].isin(_UNRANKED)]
    ranked = ranked[ranked.groupby(_PLACE)["label"].transform("size") > 1]
    counts = ranked.groupby(by).agg(
        tables=("table", "size"), best=("is_best", "sum"), among_best=("among_best", "sum")
    )
    return counts.reset_index().sort_values(by, key=in_order, ignore_index=True)
