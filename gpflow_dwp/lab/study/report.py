"""The report of a study: text, CSV tables and figures in a directory, and a table for a README."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path

import pandas as pd

from gpflow_dwp.files import held
from gpflow_dwp.lab.study import figures
from gpflow_dwp.lab.study._report_text import each, estimate, printed, sections
from gpflow_dwp.lab.study.frame import configurations, results_frame
from gpflow_dwp.lab.study.published import PAPERS, PRINTED_NAMES
from gpflow_dwp.lab.study.results import CELL_PLACE, Record
from gpflow_dwp.lab.study.tables import (
    calibration_table,
    density_table,
    model_ranks,
    paired_differences,
    runtime_table,
    score_table,
)
from gpflow_dwp.validation import check_choice

__all__ = ["REPORT_FILES", "markdown_table", "write_report"]

_REPORT = "report.txt"
_TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "configurations": configurations,
    "scores": score_table,
    "differences": paired_differences,
    "ranks": model_ranks,
    "runtimes": runtime_table,
    "calibration": calibration_table,
    "densities": density_table,
}
_FIGURES = (
    *("elbo", "test_log_likelihood", "rmse"),
    *("differences", "runtimes", "coverage", "densities"),
)

# Everything that a report may consist of. A new report takes away what it does not replace.
REPORT_FILES = (
    _REPORT,
    *(f"{name}.csv" for name in ("results", "failures", *_TABLES)),
    *(f"{name}.png" for name in _FIGURES),
)


def write_report(results: Iterable[Record] | pd.DataFrame, directory: str | PathLike[str]) -> str:
    """Write a study's report beside the printed numbers: text, CSV tables and figures.

    Everything is made before the first file of an earlier report is touched, and each file is then
    replaced at once. Other files in the directory stay as they are.

    :param results: Records of a study, or the table of finished cells that
        :func:`~gpflow_dwp.lab.study.frame.results_frame` makes of them.
    :param directory: Where to; made here if need be.
    :return: The text, as it is in ``report.txt``.
    :raises ValueError: If there is no record, or one cell of one configuration is there twice.
    :raises ImportError: If matplotlib is not installed.
    """
    records = [] if isinstance(results, pd.DataFrame) else list(results)
    frame = results if isinstance(results, pd.DataFrame) else results_frame(records)
    failures = _failures(records)
    if frame.empty and failures.empty:
        raise ValueError(
            "results must hold at least one cell, got none: there is nothing to report"
        )
    tables = {} if frame.empty else {name: table(frame) for name, table in _TABLES.items()}
    text = "\n\n".join(sections(frame, tables, failures)) + "\n"

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / ".report.partial"
    with held(directory, wait=True):
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
        partial.mkdir()
        try:
            (partial / _REPORT).write_text(text, encoding="utf-8")
            for name, table in {**tables, "results": frame, "failures": failures}.items():
                if name != "densities" or len(table):
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

    :param results: The flat table of :func:`~gpflow_dwp.lab.study.frame.results_frame`.
    :param metric: "elbo", "test_log_likelihood" or "rmse".
    :param paper: "improved", "original" or "vmg".
    :return: The table. Where one place has several configurations, each has a row, with its number.
    :raises ValueError: If the table is empty or not such a table, or a name is unknown.
    """
    check_choice(PAPERS, paper=paper)
    scores = score_table(results)
    check_choice(scores["metric"].unique(), metric=metric)
    chosen = scores[scores["metric"] == metric].rename(columns={"dataset": "data set"})
    in_print = each(chosen, printed, f"{paper}_mean", f"{paper}_standard_error")
    measured = each(chosen, estimate, "mean", "standard_error")
    texts = [
        f"{own} ({text})" if text else own for own, text in zip(measured, in_print, strict=True)
    ]
    place = ["data set", "depth", "configuration"]
    table = chosen.assign(text=texts).pivot(index=place, columns="model", values="text").fillna("")
    table = table[[name for name in PRINTED_NAMES if name in table]].rename(columns=PRINTED_NAMES)
    ends = chosen.groupby(place)["splits"].agg(["min", "max"])
    splits = [f"{low}" if low == high else f"{low} to {high}" for low, high in ends.to_numpy()]
    table.insert(0, "splits", splits)
    table = table.reset_index()
    if not table.duplicated(place[:2]).any():
        del table["configuration"]
    return table.to_markdown(index=False, tablefmt="github", disable_numparse=True)


def _failures(records: Iterable[Record]) -> pd.DataFrame:
    """Cells that failed and have not been finished by a later try."""
    last = {record.key: record for record in sorted(records, key=lambda r: r.status == "finished")}
    rows = [
        {**{name: record.cell[name] for name in CELL_PLACE}, "error": record.error}
        for record in last.values()
        if record.status == "failed"
    ]
    return pd.DataFrame(rows, columns=[*CELL_PLACE, "error"])


def _write_figures(tables: dict[str, pd.DataFrame], directory: Path) -> None:
    scores, differences = tables["scores"], tables["differences"]
    drawn = {name: figures.plot_scores(scores, name) for name in scores["metric"].unique()}
    if (differences["metric"] == "elbo").any():
        drawn["differences"] = figures.plot_differences(differences)
    drawn["runtimes"] = figures.plot_runtimes(tables["runtimes"])
    if tables["calibration"]["coverage_95"].notna().any():
        drawn["coverage"] = figures.plot_coverage(tables["calibration"])
    if len(tables["densities"]):
        drawn["densities"] = figures.plot_densities(tables["densities"])
    for name, figure in drawn.items():
        figure.savefig(directory / f"{name}.png")
