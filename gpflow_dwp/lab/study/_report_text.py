"""The report of a study as text: one section for each table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from tabulate import tabulate

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
        yield _section("Configurations", _table(tables["configurations"]))
        for metric, scores in tables["scores"].groupby("metric", sort=False):
            yield _section(f"{_TITLES[metric]} ({_direction(metric)})", _scores(scores))
        for metric, differences in tables["differences"].groupby("metric", sort=False):
            title = f"Paired differences: {_TITLES[metric]} ({_direction(metric)})"
            note = _NOTE_ON_DIFFERENCES if metric == "elbo" else ""
            yield _section(title, _differences(differences) + note)
        if len(tables["ranks"]):
            title = "Mean ranks over data sets, depths and splits (1 is best)"
            yield _section(title, _ranks(tables["ranks"]))
        yield _section("Runtime", _runtimes(tables["runtimes"]) + _NOTE_ON_RUNTIMES)
        title = "CRPS (lower is better) and coverage of central intervals"
        yield _section(title, _calibration(tables["calibration"]))
        if len(tables["densities"]):
            title = "Densities: test log-likelihood per datum, standardised units"
            text = _densities(tables["densities"]) + _NOTE_ON_DENSITIES
            yield _section(f"{title} (higher is better)", text)
        yield _section("Provenance", _provenance(results))
    if len(failures):
        errors = [textwrap.shorten(error or "", 200) for error in failures["error"]]
        yield _section("Failed cells", _table(failures.assign(error=errors)))


def _scores(scores: pd.DataFrame) -> str:
    shown = _place(scores)
    shown["splits"] = each(scores, lambda n, c: f"{n}{'†' if c > 1 else ''}", "splits", "commits")
    shown["measured"] = _estimates(scores, "mean", "standard_error")
    counted = []
    for paper in PAPERS:
        if scores[f"{paper}_mean"].isna().all():
            continue
        difference = ("mean", "standard_error", f"{paper}_difference")
        shown[paper] = each(scores, printed, f"{paper}_mean", f"{paper}_standard_error")
        shown[f"{paper} diff"] = each(
            scores, lambda m, e, d: _number(d, f"+.{_decimals(m, e)}f"), *difference
        )
        shown[f"{paper} in SE"] = _numbers(scores, f"{paper}_difference_in_se", "+.1f")
        shown[f"{paper} verdict"] = scores[f"{paper}_verdict"]
        counts = scores[f"{paper}_verdict"].value_counts()
        found = [f"{counts[name]} {text}" for name, text in _VERDICTS.items() if name in counts]
        counted.append(f"\nAgainst the {paper} paper: {', '.join(found)}.")
    return _table(shown) + "".join(counted)


def _differences(differences: pd.DataFrame) -> str:
    shown = _place(differences)
    shown["model"] += " − " + differences["baseline"].map(PRINTED_NAMES)
    shown["splits"] = differences["splits"]
    shown["measured"] = _estimates(differences, "mean", "standard_error")
    shown["in SE"] = _numbers(differences, "mean_in_se", "+.1f")
    if differences["printed_mean"].notna().any():
        shown["improved"] = each(differences, printed, "printed_mean", "printed_standard_error")
    return _table(shown)


def _ranks(ranks: pd.DataFrame) -> str:
    by = ["compared", "model"]
    shown = ranks.pivot(index=by, columns="metric", values="mean_rank")
    shown = shown.reindex(columns=list(LARGER_IS_BETTER)).map(lambda rank: _number(rank, ".2f"))
    # One number, unless scores that are not finite left some comparisons out.
    counts = ranks.groupby(by)["comparisons"].agg(lambda counts: ", ".join(map(str, {*counts})))
    shown = shown.assign(comparisons=counts).loc[pd.MultiIndex.from_frame(ranks[by]).unique()]
    shown = shown.reset_index()
    return _table(shown.assign(model=shown["model"].map(PRINTED_NAMES)))


def _runtimes(runtimes: pd.DataFrame) -> str:
    kinds = [c for c in ("machine", "threads") if c in runtimes and runtimes[c].nunique() > 1]
    shown = _place(runtimes).assign(splits=runtimes["splits"], **runtimes[kinds])
    shown["s/step"] = _numbers(runtimes, "seconds_per_step", ".3f")
    shown["/ DGP"] = _numbers(runtimes, "step_over_dgp", ".3f")
    shown["training s"] = _numbers(runtimes, "training_seconds", ".0f")
    shown["s/epoch"] = _numbers(runtimes, "seconds_per_epoch", ".3f")
    for paper in PAPERS_WITH_RUNTIMES:
        shown[f"{paper} s/epoch"] = _numbers(runtimes, f"{paper}_seconds_per_epoch", ".3f")
        shown[f"{paper} / DGP"] = _numbers(runtimes, f"{paper}_over_dgp", ".3f")
    return _table(shown)


def _calibration(calibration: pd.DataFrame) -> str:
    shown = _place(calibration).assign(splits=calibration["splits"])
    for name in ("crps", "coverage_50", "coverage_90", "coverage_95"):
        shown[name.replace("_", " ")] = _estimates(calibration, name)
    return _table(shown)


def _densities(densities: pd.DataFrame) -> str:
    shown = _place(densities).assign(**densities[["inference", "splits"]])
    for name in ("kernel", "exact"):
        shown[name] = _estimates(densities, name)
    shown["printed"] = each(densities, printed, "printed_mean", "printed_standard_error")
    shown["diff"] = _numbers(densities, "difference", "+.3f")
    for title, name in (("over GP", "over_gp"), ("over VI", "over_vi")):
        texts = each(densities, estimate, name, f"{name}_standard_error")
        shown[title] = np.where(densities[name].isna(), "", texts)
    shown["Shapiro-Wilk"] = _numbers(densities, "shapiro_wilk", ".4f")
    return _table(shown)


def _provenance(results: pd.DataFrame) -> str:
    lines = []
    for column in (name for name in PROVENANCE_COLUMNS if name in results):
        values = results[column].dropna()
        if column == "seconds":
            lines.append(f"hours of all cells: {values.sum() / 3600:.1f}")
        elif column == "date" and len(values):
            lines.append(f"dates: {values.min()} to {values.max()}")
        else:
            lines += [f"{column}: {value}" for value in values.unique()]
    return "\n".join(lines)


def _place(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that say which cells a row is about."""
    place = table[["dataset", "depth"]].assign(model=table["model"].map(PRINTED_NAMES))
    several = table["configuration"].nunique() > 1
    return place.assign(**{"conf.": table["configuration"]}) if several else place


def each(table: pd.DataFrame, text: Callable[..., str], *columns: str) -> list[str]:
    """A text for each row, from the values of some columns."""
    return [text(*values) for values in zip(*(table[name] for name in columns), strict=True)]


def _estimates(table: pd.DataFrame, name: str, error: str | None = None) -> list[str]:
    """Means with their standard errors, or with the mark of one split."""
    texts = each(table, estimate, name, error or f"{name}_standard_error")
    finite = np.isfinite(table[name]) & (table["splits"] == 1)
    return [f"{text} *" if mark else text for text, mark in zip(texts, finite, strict=True)]


def estimate(mean: float, error: float) -> str:
    """A measured mean with its standard error, if there is one."""
    if not np.isfinite(mean):
        return f"{mean:g}"
    decimals = _decimals(mean, error)
    return f"{mean:.{decimals}f}" + ("" if np.isnan(error) else f" ± {error:.{decimals}f}")


def _decimals(mean: float, error: float) -> int:
    return 3 if max(abs(mean), np.nan_to_num(error)) >= 0.01 else 5


def printed(mean: float, error: float) -> str:
    """A printed mean with its standard error, or nothing."""
    return "" if np.isnan(mean) else f"{mean:.2f} ± {error:.2f}"


def _numbers(table: pd.DataFrame, column: str, spec: str) -> list[str]:
    return [_number(value, spec) for value in table[column]]


def _number(value: float, spec: str) -> str:
    return "" if np.isnan(value) else format(value, spec)


def _direction(metric: str) -> str:
    return "higher is better" if LARGER_IS_BETTER[metric] else "lower is better"


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
