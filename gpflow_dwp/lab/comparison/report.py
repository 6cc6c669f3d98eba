"""The report of a comparison: Markdown, a CSV table and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from gpflow_dwp.files import replacing, write_whole
from gpflow_dwp.lab.comparison.figure import plot_relative_scores
from gpflow_dwp.lab.comparison.scoreboard import (
    comparison_frame,
    comparison_scores,
    in_order,
    tables_won,
)
from gpflow_dwp.lab.comparison.tables import TABLES
from gpflow_dwp.lab.study.results import Record

__all__ = ["write_comparison"]

_TITLES = {
    "nlpd": "Negative log predictive density, nats a row, raw units",
    "crps": "Continuous ranked probability score, raw units",
    "rmse": "Root mean squared error, raw units",
    "coverage_90": "Share of test rows within central 90% intervals",
    "nll": "Negative log probability of the label, nats a row",
    "error": "Share of wrong labels",
    "ece": "Expected calibration error, 15 bins",
    "fit_seconds": "Processor time of fitting, seconds",
    "predict_seconds": "Processor time of predicting all test rows, seconds",
}
_NOTES = """\
Means over splits; in brackets the paired difference to the best, with its standard error. **Bold**:
the best, or within one paired standard error of it. With few splits standard errors are rough
themselves: from 5 their relative error is about 35%. A number after / says how many splits a mean
is of where other models have more. Of every score but the coverage less is better."""


def write_comparison(
    records: Iterable[Record], directory: str | Path, splits: Sequence[int], tables: Sequence[str]
) -> str:
    """Write the report of some splits of some tables, with all models that a comparison has.

    Splits that claims are made on have a report of their own beside that of splits that defaults
    are chosen on: ``report-0-4.md``, ``scores-0-4.csv`` and ``relative-0-4.png`` for splits 0 to 4.

    :raises ValueError: If no cell of them is finished.
    :raises ImportError: If pandas or matplotlib is not installed.
    """
    chosen = [r for r in records if r.cell["split"] in splits and r.cell["table"] in tables]
    scores = comparison_scores(comparison_frame(chosen))
    ending, directory = _ranges(splits), Path(directory)
    text = _markdown(chosen, scores, ending)
    figure = plot_relative_scores(scores)
    write_whole(directory / f"report-{ending}.md", text)
    write_whole(directory / f"scores-{ending}.csv", scores.to_csv(index=False))
    with replacing(directory / f"relative-{ending}.png") as partial:
        figure.savefig(partial, format="png")
    return text


def _markdown(records: Sequence[Record], scores: pd.DataFrame, splits: str) -> str:
    parts = [f"# Comparison, splits {splits}", _NOTES]
    won = tables_won(scores).astype(str)
    won["text"] = won["best"] + " / " + won["among_best"] + " of " + won["tables"]
    for task, rows in scores.groupby("task", sort=False):
        parts += [f"## {str(task).capitalize()}"]
        if (won["task"] == task).any():
            counts = _pivot(won[won["task"] == task], "metric")
            parts += ["### Tables won: best / among the best", counts]
        for metric, block in rows.groupby("metric", sort=False):
            parts += [f"### {_TITLES[str(metric)]}", _pivot(block.assign(text=_texts), "table")]
    used = [(name, TABLES[name]) for name in scores["table"].unique()]
    described = [(name, t.task, t.num_data, t.num_inputs, t.source) for name, t in used]
    headers = ["table", "task", "N", "D", "source"]
    parts += ["## Tables", tabulate(described, headers, tablefmt="github")]
    # What a deep Wishart process was made with, by label.
    own = [r.cell for r in records if r.cell["model"] == "dwp"]
    settings = {(c["label"], json.dumps({**c["defaults"], **c["settings"]})) for c in own}
    failed = [r for r in records if r.status == "failed"]
    if settings:
        lines = [f"- {label}: `{text}`" for label, text in sorted(settings)]
        parts += ["## Settings", "\n".join(lines)]
    if failed:
        lines = [
            f"- {r.cell['table']}, {r.cell['label']}, split {r.cell['split']}: {r.error}"
            for r in failed
        ]
        parts += ["## Failed", "\n".join(lines)]
    machines = {str(record.provenance.get("machine")) for record in records}
    commits = {str(record.provenance.get("commit")) for record in records}
    parts += [f"One thread a cell, on {'; '.join(sorted(machines))}; commits: {len(commits)}."]
    return "\n\n".join(parts) + "\n"


def _pivot(rows: pd.DataFrame, index: str) -> str:
    """A Markdown table of texts, a column for each label."""
    names, labels = (rows[column].sort_values(key=in_order).unique() for column in (index, "label"))
    table = rows.pivot(index=index, columns="label", values="text").loc[names, labels].fillna("")
    # Numbers are text by now, which would be read and written in another way.
    return table.reset_index().to_markdown(index=False, tablefmt="github", disable_numparse=True)


def _texts(rows: pd.DataFrame) -> list[str]:
    most = rows.groupby("table")["splits"].transform("max")
    texts = []
    for row, full in zip(rows.itertuples(index=False), most, strict=True):
        text = f"**{row.mean:.4g}**" if row.among_best else f"{row.mean:.4g}"
        if row.difference > 0.0:
            text += f" (+{_short(row.difference)}"
            if row.difference_standard_error == row.difference_standard_error:  # of several splits
                text += f" ± {_short(row.difference_standard_error)}"
            text += ")"
        texts.append(text if row.splits == full else f"{text} /{row.splits}")
    return texts


def _short(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.2g}" if number < 100.0 else f"{number:.0f}"


def _ranges(splits: Sequence[int]) -> str:
    """Numbers as a name: 0-4, or 0-2_7."""
    numbers = pd.Series(sorted(set(splits)))
    runs = numbers.groupby(numbers - numbers.index).agg(["min", "max"]).to_numpy()
    return "_".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
