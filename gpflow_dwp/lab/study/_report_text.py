"""The report of a study as text: one section for each table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tabulate import tabulate

from gpflow_dwp.lab.study._grouping import LARGER_IS_BETTER, PROVENANCE_COLUMNS, groups, select
from gpflow_dwp.lab.study.published import PAPERS, PAPERS_WITH_RUNTIMES, PRINTED_NAMES
from gpflow_dwp.lab.study.summary import AGREEMENT

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["estimate", "report_sections"]

_TITLES = {
    "elbo": "ELBO per training datum, nats",
    "test_log_likelihood": "Test log-likelihood per datum, raw units",
    "rmse": "Root mean squared error of the test rows, raw units",
    "crps": "Continuous ranked probability score, raw units",
}
_LEFT = {"compared", "dataset", "inference", "machine", "model", "verdict"}
_VERDICTS = {
    "within": "within",
    "better": "better",
    "worse": "worse",
    "one split": "of one split",
    "not finite": "not finite",
}
_NOTES = f"""\
Means over splits, ± one standard error: the standard deviation over splits (divisor: splits less
one) over the root of their number. With few splits it is rough itself: from 5 its relative error is
about 35%, from 3 about 50%. * marks one split, which has none.
"improved" is Ober, Anson, Milsom and Aitchison (2023), "original" Ober and Aitchison (2021), "vmg"
Louizos and Welling (2016), whose splits are others than these; their means are over 20 splits, of
protein over 5, and rounded to two decimals.
† marks means of cells that are not all of one version of the code, by its commit.
"diff" is measured minus printed, and "in SE" that in combined standard errors,
sqrt(measured² + printed²), where a printed 0.00 counts as 0.005, the most that it can round away.
The printed mean's own rounding, up to 0.005, comes on top. "verdict" is "within" up to
{AGREEMENT:g} combined standard errors, and beyond that "better" or "worse" than print."""

_NOTES_ON_DENSITIES = """\
"kernel" is by kernel density estimates from draws of each row's target, as is what is printed in
Salimbeni, Dutordoir, Hensman and Deisenroth (2019), Table 1, where the splits are others and IWVI
takes 5 importance samples; "diff" is kernel minus printed. "exact" is the predictive mixture's own,
and so are the paired differences from the single-layer GP and from the same model by VI.
Shapiro-Wilk: 1 for Gaussian marginals, less for others; the median over test rows."""


def report_sections(
    results: pd.DataFrame, tables: dict[str, pd.DataFrame], failures: pd.DataFrame
) -> str:
    """The whole text.

    :param results: The flat table; empty if no cell has finished.
    :param tables: The tables by the names of their files; none if no cell has finished.
    :param failures: Failed cells, with columns dataset, depth, model, split and error.
    """
    sections = [f"{len(results)} finished cells, {len(failures)} failed cells."]
    if tables:
        sections += [
            _NOTES,
            _section("Configurations", _cells(tables["configurations"])),
            *(_scores(tables["scores"], metric) for metric in tables["scores"]["metric"].unique()),
            *_differences(tables["differences"]),
            _ranks(tables["ranks"]),
            _runtimes(tables["runtimes"]),
            _calibration(tables["calibration"]),
            _densities(tables["densities"]),
            _provenance(results),
        ]
    if len(failures):
        shown = failures.assign(error=failures["error"].fillna("").map(_one_line))
        sections.append(_section("Failed cells", _cells(shown)))
    return "\n\n".join(section for section in sections if section) + "\n"


def estimate(mean: float, error: float, *, splits: int | None = None) -> str:
    """A measured mean with its standard error, or with the mark of one split."""
    if not np.isfinite(mean):
        return f"{mean:g}"
    text = f"{mean:.{_decimals(mean, error)}f}"
    if np.isnan(error):
        return f"{text} *" if splits == 1 else text
    return f"{text} ± {error:.{_decimals(mean, error)}f}"


def _scores(scores: pd.DataFrame, metric: str) -> str:
    chosen = select(scores, metric=metric)
    rows = []
    for row in chosen.to_dict("records"):
        measured = estimate(row["mean"], row["standard_error"], splits=row["splits"])
        splits = f"{row['splits']}{'†' if row['commits'] > 1 else ''}"
        shown = {**_place(row), "splits": splits, "measured": measured}
        for paper in PAPERS:
            if chosen[f"{paper}_mean"].notna().any():
                shown[paper] = _printed(row[f"{paper}_mean"], row[f"{paper}_standard_error"])
                decimals = _decimals(row["mean"], row["standard_error"])
                shown[f"{paper} diff"] = _number(row[f"{paper}_difference"], f"+.{decimals}f")
                shown[f"{paper} in SE"] = _number(row[f"{paper}_difference_in_se"], "+.1f")
                shown[f"{paper} verdict"] = row[f"{paper}_verdict"]
        rows.append(shown)
    lines = [_table(rows)]
    for paper in PAPERS:
        counts = chosen[f"{paper}_verdict"].value_counts()
        found = [f"{counts[name]} {text}" for name, text in _VERDICTS.items() if name in counts]
        if found:
            lines.append(f"Against the {paper} paper: {', '.join(found)}.")
    return _section(f"{_TITLES[metric]} ({_direction(metric)})", "\n".join(lines))


def _differences(differences: pd.DataFrame) -> list[str]:
    sections = []
    for place, block in groups(differences, ["metric"]) if len(differences) else ():
        metric = place["metric"]
        rows = []
        for row in block.to_dict("records"):
            pair = f"{PRINTED_NAMES[row['model']]} − {PRINTED_NAMES[row['baseline']]}"
            measured = estimate(row["mean"], row["standard_error"], splits=row["splits"])
            shown = {**_place(row), "model": pair, "splits": row["splits"], "measured": measured}
            shown["in SE"] = _number(row["mean_in_se"], "+.1f")
            if block["printed_mean"].notna().any():
                shown["improved"] = _printed(row["printed_mean"], row["printed_standard_error"])
            rows.append(shown)
        text = f"Paired differences: {_TITLES[metric]} ({_direction(metric)})"
        note = (
            ""
            if metric != "elbo"
            else (
                "\nThe printed differences (Table 4) are those of the printed means, with standard "
                "errors\nthat are not paired: those of both means, combined."
            )
        )
        sections.append(_section(text, _table(rows) + note))
    return sections


def _ranks(ranks: pd.DataFrame) -> str:
    if not len(ranks):
        return ""
    rows = []
    for place, block in groups(ranks, ["compared", "model"]):
        shown = {"compared": place["compared"], "model": PRINTED_NAMES[place["model"]]}
        for metric in LARGER_IS_BETTER:
            found = select(block, metric=metric)
            shown[metric] = f"{found['mean_rank'].iloc[0]:.2f}" if len(found) else ""
        # One number, unless scores that are not finite left some comparisons out.
        counts = dict.fromkeys(block["comparisons"])
        rows.append({**shown, "comparisons": ", ".join(str(count) for count in counts)})
    return _section("Mean ranks over data sets, depths and splits (1 is best)", _table(rows))


def _runtimes(runtimes: pd.DataFrame) -> str:
    kinds = [c for c in ("machine", "threads") if c in runtimes and runtimes[c].nunique() > 1]
    rows = []
    for row in runtimes.to_dict("records"):
        shown = {**_place(row), "splits": row["splits"], **{kind: row[kind] for kind in kinds}}
        shown |= {
            "s/step": _number(row["seconds_per_step"], ".3f"),
            "/ DGP": _number(row["step_over_dgp"], ".3f"),
            "training s": f"{row['training_seconds']:.0f}",
            "s/epoch": _number(row["seconds_per_epoch"], ".3f"),
        }
        for paper in PAPERS_WITH_RUNTIMES:
            shown[f"{paper} s/epoch"] = _number(row[f"{paper}_seconds_per_epoch"], ".3f")
            shown[f"{paper} / DGP"] = _number(row[f"{paper}_over_dgp"], ".3f")
        rows.append(shown)
    note = (
        "Printed (improved: Table 2, original: Table 4): boston on an Intel Core i9-10900X, protein"
        "\non an NVIDIA GeForce 2080 Ti; the batch size is not printed."
    )
    return _section("Runtime", f"{_table(rows)}\n{note}")


def _calibration(calibration: pd.DataFrame) -> str:
    rows = []
    for row in calibration.to_dict("records"):
        shown = {**_place(row), "splits": row["splits"]}
        for metric in ("crps", "coverage_50", "coverage_90", "coverage_95"):
            name = metric.replace("_", " ")
            error = row[f"{metric}_standard_error"]
            shown[name] = estimate(row[metric], error, splits=row["splits"])
        rows.append(shown)
    return _section("CRPS (lower is better) and coverage of central intervals", _table(rows))


def _densities(densities: pd.DataFrame) -> str:
    if not len(densities):
        return ""
    rows = []
    for row in densities.to_dict("records"):
        shown = {**_place(row), "inference": row["inference"], "splits": row["splits"]}
        for name in ("kernel", "exact"):
            error = row[f"{name}_standard_error"]
            shown[name] = estimate(row[name], error, splits=row["splits"])
        shown["printed"] = _printed(row["printed_mean"], row["printed_standard_error"])
        shown["diff"] = _number(row["difference"], "+.3f")
        for title, name in (("over GP", "over_gp"), ("over VI", "over_vi")):
            value, error = row[name], row[f"{name}_standard_error"]
            shown[title] = "" if np.isnan(value) else estimate(value, error)
        shown["Shapiro-Wilk"] = f"{row['shapiro_wilk']:.4f}"
        rows.append(shown)
    return _section(
        "Densities: test log-likelihood per datum, standardised units (higher is better)",
        f"{_table(rows)}\n{_NOTES_ON_DENSITIES}",
    )


def _provenance(results: pd.DataFrame) -> str:
    lines = []
    for column in (name for name in PROVENANCE_COLUMNS if name in results):
        values = results[column].dropna()
        if column == "seconds":
            lines.append(f"hours of all cells: {values.sum() / 3600:.1f}")
        elif column == "date" and len(values):
            lines.append(f"dates: {values.min()} to {values.max()}")
        else:
            lines += [f"{column}: {value}" for value in dict.fromkeys(values)]
    return _section("Provenance", "\n".join(lines))


def _place(row: dict[str, Any]) -> dict[str, Any]:
    """The columns that say which cells a row is about."""
    place = {"dataset": row["dataset"], "depth": row["depth"], "model": row["model"]}
    return {**place, "model": PRINTED_NAMES[row["model"]], "conf.": row["configuration"]}


def _printed(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else f"{mean:.2f} ± {error:.2f}"


def _number(value: float, spec: str) -> str:
    return "" if np.isnan(value) else format(value, spec)


def _decimals(mean: float, error: float) -> int:
    return 3 if max(abs(mean), np.nan_to_num(error)) >= 0.01 else 5


def _direction(metric: str) -> str:
    return "higher is better" if LARGER_IS_BETTER[metric] else "lower is better"


def _one_line(error: str) -> str:
    return textwrap.shorten(error, 200)


def _cells(table: pd.DataFrame) -> str:
    text = table.astype(object).where(table.notna(), "")
    return tabulate(text.to_dict("records"), headers="keys", disable_numparse=True)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as aligned text; the column of configurations is left out if there is one only."""
    if len({row.get("conf.") for row in rows}) == 1:
        rows = [{name: row[name] for name in row if name != "conf."} for row in rows]
    align = ["left" if name.split()[-1] in _LEFT else "right" for name in rows[0]]
    headers = {
        name: re.sub(rf"^({'|'.join(PAPERS)}) (?=diff|in SE|verdict)", "", name) for name in rows[0]
    }
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=align)


def _section(title: str, body: str) -> str:
    return f"{title}\n{'=' * len(title)}\n{body}"
