"""The report of a study: text, CSV tables and figures in a directory, and a table for a README."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from gpflow_dwp.files import held
from gpflow_dwp.lab.study._grouping import groups, select
from gpflow_dwp.lab.study._report_text import estimate, report_sections
from gpflow_dwp.lab.study.comparisons import model_ranks, paired_differences
from gpflow_dwp.lab.study.densities import density_table
from gpflow_dwp.lab.study.figures import (
    plot_coverage,
    plot_densities,
    plot_differences,
    plot_runtimes,
    plot_scores,
)
from gpflow_dwp.lab.study.published import PAPERS, PRINTED_NAMES
from gpflow_dwp.lab.study.summary import (
    calibration_table,
    configurations,
    results_frame,
    runtime_table,
    score_table,
)
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from gpflow_dwp.lab.study.results import Record

__all__ = ["REPORT", "REPORT_FILES", "markdown_table", "write_report"]

REPORT = "report.txt"

# Everything that a report may consist of. A new report takes away what it does not replace.
REPORT_FILES = (
    REPORT,
    "results.csv",
    "failures.csv",
    "configurations.csv",
    "scores.csv",
    "differences.csv",
    "ranks.csv",
    "runtimes.csv",
    "calibration.csv",
    "densities.csv",
    "elbo.png",
    "test_log_likelihood.png",
    "rmse.png",
    "differences.png",
    "runtimes.png",
    "coverage.png",
    "densities.png",
)


def write_report(results: Iterable[Record] | pd.DataFrame, directory: str | PathLike[str]) -> str:
    """Write a study's report beside the printed numbers: text, CSV tables and figures.

    Everything is made before the first file of an earlier report is touched, and each file is then
    replaced at once. Other files in the directory stay as they are.

    :param results: Records of a study, or the table of finished cells that
        :func:`~gpflow_dwp.lab.study.summary.results_frame` makes of them.
    :param directory: Where to; made here if need be.
    :return: The text, as it is in ``report.txt``.
    :raises ValueError: If there is no record, or one cell of one configuration is there twice.
    :raises ImportError: If pandas or matplotlib is not installed.
    """
    pandas = import_optional("pandas", "cli")
    if isinstance(results, pandas.DataFrame):
        frame, failures = results, _failures([])
    else:
        records = list(results)
        frame, failures = results_frame(records), _failures(records)
    if frame.empty and failures.empty:
        raise ValueError(
            "results must hold at least one cell, got none: there is nothing to report"
        )
    tables = {} if frame.empty else _tables(frame)
    text = report_sections(frame, tables, failures)

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / ".report.partial"
    with held(directory, wait=True):
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
        partial.mkdir()
        try:
            (partial / REPORT).write_text(text, encoding="utf-8")
            for name, table in {**tables, "results": frame, "failures": failures}.items():
                if name == "densities" and table.empty:
                    continue
                table.to_csv(partial / f"{name}.csv", index=False)
            if tables:
                _write_figures(tables, partial)
            for name in REPORT_FILES:
                if (partial / name).exists():
                    (partial / name).replace(directory / name)
                else:
                    (directory / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(partial)
    return text


def markdown_table(results: pd.DataFrame, metric: str = "elbo", *, paper: str = "improved") -> str:
    """One metric as a Markdown table: a row for each data set and depth, a column for each model.

    A cell says "measured ± standard error (printed ± standard error)"; without a standard error
    where one split was measured, without brackets where nothing is printed.

    :param results: The flat table of :func:`~gpflow_dwp.lab.study.summary.results_frame`.
    :param metric: "elbo", "test_log_likelihood" or "rmse".
    :param paper: "improved", "original" or "vmg".
    :return: The table. Where one place has several configurations, each has a row, with its number.
    :raises ValueError: If the table is empty or not such a table, or a name is unknown.
    """
    check_choice(PAPERS, paper=paper)
    scores = score_table(results)
    check_choice(scores["metric"].unique(), metric=metric)
    chosen = select(scores, metric=metric)
    several = chosen.groupby(["dataset", "depth"])["configuration"].nunique().max() > 1
    models = [model for model in PRINTED_NAMES if (chosen["model"] == model).any()]
    rows = []
    for place, block in groups(chosen, ["dataset", "depth", "configuration"]):
        row: dict[str, Any] = {"data set": place["dataset"], "depth": place["depth"]}
        if several:
            row["configuration"] = place["configuration"]
        row["splits"] = _range(block["splits"])
        cells = {cell["model"]: _markdown_cell(cell, paper) for cell in block.to_dict("records")}
        rows.append(row | {PRINTED_NAMES[model]: cells.get(model, "") for model in models})
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True)


def _tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {
        "configurations": configurations(frame),
        "scores": score_table(frame),
        "differences": paired_differences(frame),
        "ranks": model_ranks(frame),
        "runtimes": runtime_table(frame),
        "calibration": calibration_table(frame),
        "densities": density_table(frame),
    }


def _write_figures(tables: dict[str, pd.DataFrame], directory: Path) -> None:
    figures = {
        metric: plot_scores(tables["scores"], metric)
        for metric in tables["scores"]["metric"].unique()
    }
    if (tables["differences"]["metric"] == "elbo").any():
        figures["differences"] = plot_differences(tables["differences"])
    figures["runtimes"] = plot_runtimes(tables["runtimes"])
    if tables["calibration"]["coverage_95"].notna().any():
        figures["coverage"] = plot_coverage(tables["calibration"])
    if len(tables["densities"]):
        figures["densities"] = plot_densities(tables["densities"])
    for name, figure in figures.items():
        figure.savefig(directory / f"{name}.png")


def _failures(records: Iterable[Record]) -> pd.DataFrame:
    """Cells that failed and have not been finished by a later try."""
    columns = ["dataset", "depth", "model", "split"]
    records = list(records)
    finished = {record.key for record in records if record.status == "finished"}
    failed = {r.key: r for r in records if r.status == "failed" and r.key not in finished}
    return import_optional("pandas", "cli").DataFrame(
        [
            {**{name: record.cell[name] for name in columns}, "error": record.error}
            for record in failed.values()
        ],
        columns=[*columns, "error"],
    )


def _markdown_cell(cell: dict[str, Any], paper: str) -> str:
    measured = estimate(cell["mean"], cell["standard_error"])
    mean, error = cell[f"{paper}_mean"], cell[f"{paper}_standard_error"]
    return measured if mean != mean else f"{measured} ({mean:.2f} ± {error:.2f})"


def _range(splits: pd.Series) -> str:
    low, high = splits.min(), splits.max()
    return str(low) if low == high else f"{low} to {high}"
