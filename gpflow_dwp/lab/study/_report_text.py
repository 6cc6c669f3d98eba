"""The report of a study as text: one section for each table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from gpflow_dwp.lab.study.cell import RECIPES
from gpflow_dwp.lab.study.frame import PROVENANCE_COLUMNS
from gpflow_dwp.lab.study.published import PAPERS, PAPERS_WITH_RUNTIMES, PRINTED_NAMES
from gpflow_dwp.lab.study.tables import AGREEMENT, LARGER_IS_BETTER

__all__ = ["each", "estimate", "printed", "sections"]

_TITLES = {
    "elbo": "ELBO per training datum, nats",
    "test_log_likelihood": "Test log-likelihood per datum, raw units",
    "rmse": "Root mean squared error of the test rows, raw units",
    "crps": "Continuous ranked probability score, raw units",
}
_VERDICTS = {name: name for name in ("within", "better", "worse")}
_VERDICTS |= {"one split": "of one split", "not finite": "not finite"}
_OF_PAPER = (" diff", " in SE", " verdict")
_LEFT = {"compared", "dataset", "inference", "machine", "model", "verdict"}
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
_NOTE_ON_DIFFERENCES = """
The printed differences (Table 4) are those of the printed means, with standard errors
that are not paired: those of both means, combined."""
_NOTE_ON_RUNTIMES = """
Printed (improved: Table 2, original: Table 4): boston on an Intel Core i9-10900X, protein
on an NVIDIA GeForce 2080 Ti; the batch size is not printed."""
_NOTE_ON_DENSITIES = """
"kernel" is by kernel density estimates from draws of each row's target, as is what is printed in
Salimbeni, Dutordoir, Hensman and Deisenroth (2019), Table 1, where the splits are others and IWVI
takes 5 importance samples; "diff" is kernel minus printed. "exact" is the predictive mixture's own,
and so are the paired differences from the single-layer GP and from the same model by VI.
Shapiro-Wilk: 1 for Gaussian marginals, less for others; the median over test rows."""


def sections(
    results: pd.DataFrame, tables: dict[str, pd.DataFrame], failures: pd.DataFrame
) -> Iterator[str]:
    """The parts of the text.

    :param results: The flat table; empty if no cell has finished.
    :param tables: The tables by the names of their files; none if no cell has finished.
    :param failures: Failed cells, with columns dataset, depth, model, split and error.
    """
    yield f"{len(results)} finished cells, {len(failures)} failed cells."
    if tables:
        yield _NOTES
        yield _section("Configurations", _table(tables["configurations"]) + _recipes(results))
        for metric, scores in tables["scores"].groupby("metric", sort=False):
            counts = "".join(_count_verdicts(scores, paper) for paper in PAPERS)
            yield _section(_titled(metric), _laid_out(scores, _SCORES) + counts)
        for metric, block in tables["differences"].groupby("metric", sort=False):
            note = _NOTE_ON_DIFFERENCES if metric == "elbo" else ""
            text = _laid_out(block, _DIFFERENCES) + note
            yield _section(f"Paired differences: {_titled(metric)}", text)
        if len(tables["ranks"]):
            title = "Mean ranks over data sets, depths and splits (1 is best)"
            yield _section(title, _ranks(tables["ranks"]))
        yield _section("Runtime", _laid_out(tables["runtimes"], _RUNTIMES) + _NOTE_ON_RUNTIMES)
        title = "CRPS (lower is better) and coverage of central intervals"
        yield _section(title, _laid_out(tables["calibration"], _CALIBRATION))
        if len(tables["densities"]):
            title = "Densities: test log-likelihood per datum, standardised units"
            text = _laid_out(tables["densities"], _DENSITIES) + _NOTE_ON_DENSITIES
            yield _section(f"{title} (higher is better)", text)
        yield _section("Provenance", _provenance(results))
    if len(failures):
        errors = [textwrap.shorten(error or "", 200) for error in failures["error"]]
        yield _section("Failed cells", _table(failures.assign(error=errors)))


def each(table: pd.DataFrame, text: Callable[..., str], *columns: str) -> list[str]:
    """A text for each row, from the values of some columns."""
    return [text(*values) for values in zip(*(table[name] for name in columns), strict=True)]


def estimate(mean: float, error: float, splits: int = 0) -> str:
    """A measured mean with its standard error, if there is one, or the mark of one split."""
    if not np.isfinite(mean):
        return f"{mean:g}"
    decimals = _decimals(mean, error)
    text = f"{mean:.{decimals}f}" + ("" if np.isnan(error) else f" ± {error:.{decimals}f}")
    return f"{text} *" if splits == 1 else text


def printed(mean: float, error: float) -> str:
    """A printed mean with its standard error, or nothing."""
    return "" if np.isnan(mean) else f"{mean:.2f} ± {error:.2f}"


def _over(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else estimate(mean, error)


def _difference(difference: float, mean: float, error: float) -> str:
    return "" if np.isnan(difference) else f"{difference:+.{_decimals(mean, error)}f}"


def _decimals(mean: float, error: float) -> int:
    return 3 if max(abs(mean), np.nan_to_num(error)) >= 0.01 else 5


# Of each table the columns that are shown: a title, how, and from what.
_MEASURED = ("measured", estimate, "mean", "standard_error", "splits")
_SCORES = [
    ("splits", lambda n, commits: f"{n}{'†' if commits > 1 else ''}", "splits", "commits"),
    _MEASURED,
    *(
        column
        for paper in PAPERS
        for column in (
            (paper, printed, f"{paper}_mean", f"{paper}_standard_error"),
            (f"{paper} diff", _difference, f"{paper}_difference", "mean", "standard_error"),
            (f"{paper} in SE", "+.1f", f"{paper}_difference_in_se"),
            (f"{paper} verdict", str, f"{paper}_verdict"),
        )
    ),
]
_DIFFERENCES = [
    ("splits", str, "splits"),
    _MEASURED,
    ("in SE", "+.1f", "mean_in_se"),
    ("improved", printed, "printed_mean", "printed_standard_error"),
]
_RUNTIMES = [
    ("splits", str, "splits"),
    ("s/step", ".3f", "seconds_per_step"),
    ("/ DGP", ".3f", "step_over_dgp"),
    ("training s", ".0f", "training_seconds"),
    ("s/epoch", ".3f", "seconds_per_epoch"),
    *(
        (f"{paper} {title}", ".3f", f"{paper}_{name}")
        for paper in PAPERS_WITH_RUNTIMES
        for title, name in (("s/epoch", "seconds_per_epoch"), ("/ DGP", "over_dgp"))
    ),
]
_CALIBRATION = [
    ("splits", str, "splits"),
    *(
        (name.replace("_", " "), estimate, name, f"{name}_standard_error", "splits")
        for name in ("crps", "coverage_50", "coverage_90", "coverage_95")
    ),
]
_DENSITIES = [
    ("inference", str, "inference"),
    ("splits", str, "splits"),
    *((n, estimate, n, f"{n}_standard_error", "splits") for n in ("kernel", "exact")),
    ("printed", printed, "printed_mean", "printed_standard_error"),
    ("diff", "+.3f", "difference"),
    ("over GP", _over, "over_gp", "over_gp_standard_error"),
    ("over VI", _over, "over_vi", "over_vi_standard_error"),
    ("Shapiro-Wilk", ".4f", "shapiro_wilk"),
]


def _laid_out(table: pd.DataFrame, layout: Sequence[tuple[Any, ...]]) -> str:
    """A table of texts; columns that say the same of all rows, or nothing, are left out."""
    shown = table[["dataset", "depth"]].assign(model=table["model"].map(PRINTED_NAMES))
    if "baseline" in table:
        shown["model"] += " − " + table["baseline"].map(PRINTED_NAMES)
    for name in ("configuration", "machine", "threads"):
        if name in table and table[name].nunique() > 1:
            shown["conf." if name == "configuration" else name] = table[name]
    for title, form, *columns in layout:
        if not table[columns[0]].isin(["", np.nan]).all():
            text = form if callable(form) else partial(_number, form)
            shown[title] = each(table, text, *columns)
    return _table(shown)


def _ranks(ranks: pd.DataFrame) -> str:
    by = ["compared", "model"]
    shown = ranks.pivot(index=by, columns="metric", values="mean_rank")
    shown = shown.reindex(columns=list(LARGER_IS_BETTER)).map(partial(_number, ".2f"))
    # One number, unless scores that are not finite left some comparisons out.
    counts = ranks.groupby(by)["comparisons"].agg(lambda counts: ", ".join(map(str, {*counts})))
    order = pd.MultiIndex.from_frame(ranks[by]).unique()
    return _table(shown.assign(comparisons=counts).loc[order].rename(PRINTED_NAMES).reset_index())


def _count_verdicts(scores: pd.DataFrame, paper: str) -> str:
    counts = scores[f"{paper}_verdict"].value_counts()
    found = [f"{counts[name]} {text}" for name, text in _VERDICTS.items() if name in counts]
    return f"\nAgainst the {paper} paper: {', '.join(found)}." if found else ""


def _recipes(results: pd.DataFrame) -> str:
    """What the numbers of recipes mean, where results of this or an earlier version tell them."""
    numbers = sorted(results["recipe"].dropna().unique()) if "recipe" in results else []
    meanings = "; ".join(f"{n}, {RECIPES.get(n, 'of another version')}" for n in numbers)
    return f"\nRecipes: {meanings}." if numbers else ""


def _provenance(results: pd.DataFrame) -> str:
    lines = []
    for column in PROVENANCE_COLUMNS:
        values = results[column].dropna()
        if column == "seconds":
            lines.append(f"hours of all cells: {values.sum() / 3600:.1f}")
        elif column == "date" and len(values):
            lines.append(f"dates: {values.min()} to {values.max()}")
        else:
            lines += [f"{column}: {value}" for value in values.unique()]
    return "\n".join(lines)


def _number(spec: str, value: float) -> str:
    return "" if np.isnan(value) else format(value, spec)


def _titled(metric: str) -> str:
    return f"{_TITLES[metric]} ({'higher' if LARGER_IS_BETTER[metric] else 'lower'} is better)"


def _table(shown: pd.DataFrame) -> str:
    """Rows as aligned text, each comparison with print headed by the paper's name alone."""
    headers = [
        name.removeprefix(f"{name.split()[0]} ") if name.endswith(_OF_PAPER) else name
        for name in shown
    ]
    align = ["left" if name.split()[-1] in _LEFT else "right" for name in shown]
    text = shown.astype(object).where(shown.notna(), "")
    return tabulate(text, headers, showindex=False, disable_numparse=True, colalign=align)


def _section(title: str, body: str) -> str:
    return f"{title}\n{'=' * len(title)}\n{body}"
