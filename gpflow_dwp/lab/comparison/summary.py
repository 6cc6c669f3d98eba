"""The numbers of a comparison: means over splits, paired differences to the best, tables won."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from gpflow_dwp.lab.comparison._order import METRICS_IN_ORDER, in_order
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import TABLES
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd

    from gpflow_dwp.lab.study import Record

__all__ = ["comparison_frame", "comparison_scores", "tables_won"]

_UNRANKED = ("coverage_90", "fit_seconds", "predict_seconds")


def comparison_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row for each finished cell, of which the later counts where one was run twice.

    That is so where a label has been used for other settings, or defaults have changed.

    :param records: Records of a comparison.
    :return: Columns ``table``, ``task``, ``label``, ``split`` and the metrics of both tasks, NaN
        where a task has others; rows in the order of tables, labels and splits.
    :raises ValueError: If no cell is finished.
    :raises ImportError: If pandas is not installed.
    """
    rows = [
        {
            "table": record.cell["table"],
            "task": TABLES[record.cell["table"]].task,
            "label": record.cell["label"],
            "split": record.cell["split"],
            **(record.metrics or {}),
        }
        for record in records
        if record.status == "finished"
    ]
    if not rows:
        raise ValueError("records must hold at least one finished cell, got none.")
    frame = import_optional("pandas", "cli").DataFrame(rows)
    cell = ["table", "label", "split"]
    return frame.drop_duplicates(cell, keep="last").sort_values(
        cell, key=in_order, ignore_index=True
    )


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
    pandas = import_optional("pandas", "cli")
    present = [metric for metric in METRICS_IN_ORDER if metric in frame.columns]
    long = frame.melt(["table", "task", "label", "split"], present, "metric")
    known = {(task, metric) for task, names in METRICS.items() for metric in names}
    long = long[[pair in known for pair in zip(long["task"], long["metric"], strict=True)]]
    long = long.assign(value=long["value"].fillna(np.inf))
    place = ["task", "metric", "table"]
    wide = long.pivot(index=[*place, "split"], columns="label", values="value")
    with np.errstate(invalid="ignore"):  # infinity less infinity
        splits, mean = wide.groupby(place).count(), wide.groupby(place).mean()
        best = mean.where(splits.eq(splits.max(axis=1), axis=0)).idxmin(axis=1)
        names = best.loc[wide.index.droplevel("split")]
        of_best = wide.to_numpy()[np.arange(len(wide)), wide.columns.get_indexer(names)]
        paired = wide.sub(of_best, axis=0).groupby(place)
        columns = {
            "splits": splits,
            "mean": mean,
            "standard_error": wide.groupby(place).sem(),
            "difference": paired.mean(),
            "difference_standard_error": paired.sem(),
        }
    table = pandas.concat(
        {name: part.stack(future_stack=True) for name, part in columns.items()}, axis=1
    )
    table = table[table["splits"] > 0].reset_index()
    most = table.groupby(place)["splits"].transform("max")
    lowest = table["mean"].where(table["splits"] == most).groupby([table[n] for n in place])
    ranked = ~table["metric"].isin(_UNRANKED)
    table["is_best"] = (
        ranked & (table["splits"] == most) & (table["mean"] == lowest.transform("min"))
    )
    within = table["difference"] <= table["difference_standard_error"]
    table["among_best"] = ranked & (table["is_best"] | within)
    table.loc[~ranked, ["difference", "difference_standard_error"]] = np.nan
    return table.sort_values([*place, "label"], key=in_order, ignore_index=True)


def tables_won(scores: pd.DataFrame) -> pd.DataFrame:
    """How many tables each model wins.

    :param scores: As :func:`comparison_scores` gives them.
    :return: A row for each task, metric that has a best, and label: ``tables`` where it was
        compared with another model, ``best`` and ``among_best``, in how many of them it is.
    """
    ranked = scores[~scores["metric"].isin(_UNRANKED)]
    place = ["task", "metric", "table"]
    rivals = ranked.groupby(place)["label"].transform("size")
    counts = (
        ranked[rivals > 1]
        .groupby(["task", "metric", "label"])
        .agg(tables=("table", "size"), best=("is_best", "sum"), among_best=("among_best", "sum"))
    )
    return counts.reset_index().sort_values(
        ["task", "metric", "label"], key=in_order, ignore_index=True
    )
