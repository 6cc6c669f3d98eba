"""Write the tables of the pages from ci/results: `python ci/tables.py [--check | STUDY ...]`.

Finished cells of studies (what `gpflow-dwp study --out` wrote) are added to ci/results/uci first.
What stands between `<!-- table: NAME -->` and `<!-- end -->` in a page is written here, sentences
included. With --check nothing is written, and a page that differs is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

import pandas as pd
from speed_tables import BLOCKS as SPEED_BLOCKS
from speed_tables import as_table
from study_tables import BLOCKS as STUDY_BLOCKS

from gpflow_dwp.lab.comparison.scoreboard import comparison_frame, comparison_scores
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.study.frame import read_results_table, results_frame
from gpflow_dwp.lab.study.results import Record, read_results

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "notebooks/results.md",
    "notebooks/how_fast.md",
    "notebooks/how-to/gpu.md",
    "notebooks/how-to/when_to_use_it.md",
)

_RESULTS = ROOT / "ci" / "results"
_BLOCK = re.compile(r"(?<=<!-- table: )(?P<name>[^>]*)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_RIVALS = {
    "exact-gp": "exact GP",
    "bayesian-ridge": "ridge",
    "hist-gb": "boosting",
    "random-forest": "forest",
    "ngboost": "NGBoost",
    "logistic": "logistic",
    "svc": "SVC",
}
_SCORES = {"nlpd": "NLPD", "crps": "CRPS", "rmse": "RMSE", "nll": "NLL", "error": "error"}


def filled(text: str) -> str:
    """A page with its blocks as the results have them."""
    return _BLOCK.sub(lambda block: f"{block['name']} -->\n{BLOCKS[block['name']]()}\n", text)


def keep(records: Iterable[Record]) -> None:
    """Add finished cells of studies to ci/results/uci; of a key the later counts."""
    for dataset, new in results_frame(records).groupby("dataset"):
        path = _RESULTS / "uci" / f"{dataset}.csv"
        cells = pd.concat([read_results_table(path), new]).drop_duplicates("key", keep="last")
        cells.sort_values(["depth", "model", "split"], kind="stable").to_csv(path, index=False)


def main(arguments: list[str]) -> int:
    """Write the pages, or say which would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", type=Path, metavar="STUDY")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.studies and asked.check:
        parser.error("--check adds no STUDY")
    changed: list[str] = []
    if asked.studies:
        keep(record for folder in asked.studies for record in read_results(folder))
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        if filled(text) != text:
            changed.append(name)
            if not asked.check:
                (ROOT / name).write_text(filled(text), encoding="utf-8")
    print(*changed or ["all pages have the numbers of ci/results"], sep="\n")
    return int(bool(changed) and asked.check)


@cache
def _comparison() -> pd.DataFrame:
    records = read_results(_RESULTS / "comparison")
    return comparison_frame(r for r in records if r.cell["split"] < 5)


def _comparison_table(task: str) -> str:
    """The deep Wishart process beside the best of its rivals, table by table."""
    frame = _comparison()
    frame = frame[frame["task"] == task]
    scores = comparison_scores(frame).set_index(["metric", "table", "label"])
    rows = []
    for table, cells in frame.groupby("table", sort=False):
        row = {"table" if task == "regression" else "table of labels": str(table).replace("_", " ")}
        for metric in (name for name in METRICS[task] if name in _SCORES):
            values = cells.pivot(index="split", columns="label", values=metric)
            own, rivals = values["dwp"], values.drop(columns="dwp")
            rival = rivals.mean().idxmin()
            difference = own - rivals[rival]
            mean = _number(metric, own.mean())
            best = scores.loc[(metric, table, "dwp"), "among_best"]
            row[_SCORES[metric]] = f"**{mean}**" if best else mean
            row[f"best rival's {_SCORES[metric]}"] = (
                f"{_RIVALS.get(rival, rival)} {_number(metric, rivals[rival].mean())} "
                f"({_number(metric, difference.mean(), '+')} ± {_number(metric, difference.sem())})"
            )
        row["CPU s"] = f"{cells.loc[cells['label'] == 'dwp', 'fit_seconds'].mean():.0f}"
        rows.append(row)
    return as_table(rows)


def _number(metric: str, value: float, sign: str = "") -> str:
    if metric in ("nlpd", "nll", "error"):
        return f"{value:{sign}.3f}"
    return f"{value:{sign},.0f}" if abs(value) >= 1_000 else f"{value:{sign}.3g}"


def _won(metric: str) -> tuple[int, int]:
    """On how many tables it is among the best by a score, and of how many."""
    scores = comparison_scores(_comparison())
    own = scores[(scores["metric"] == metric) & (scores["label"] == "dwp")]
    return int(own["among_best"].sum()), len(own)


def _seconds(task: str) -> tuple[str, str]:
    """The shortest and the longest mean time of a fit."""
    frame = _comparison()
    own = frame[(frame["label"] == "dwp") & (frame["task"] == task)]
    means = own.groupby("table")["fit_seconds"].mean()
    return f"{means.min():.0f}", f"{means.max():.0f}"


def _claim() -> str:
    (won, of), (least, most) = _won("nlpd"), _seconds("regression")
    return _paragraph(
        f"""For densities, intervals and quantiles that can be believed, of tables of up to some
        thousand rows. With its defaults, on sixteen real tables beside exact GPs, boosting,
        forests, NGBoost and linear models, it has the best mean density of five splits, or is
        within one paired standard error of it, on {won} of {of} tables with numbers, in {least} to
        {most} CPU seconds a fit ([when to use it, and when
        not](notebooks/how-to/when_to_use_it.md)): one thread of a 2-core Intel Xeon, float64, the
        split as the seed, by `gpflow-dwp compare --splits 0-4 --out comparison`."""
    )


def _counts() -> str:
    frame = _comparison()
    own = frame[frame["label"] == "dwp"]
    covered = own.groupby("table")["coverage_90"].mean().dropna()
    seconds = own["fit_seconds"]
    (nlpd, of), (crps, _), (rmse, _) = map(_won, ("nlpd", "crps", "rmse"))
    (nll, labels), (error, _) = map(_won, ("nll", "error"))
    return _paragraph(
        f"""Of {of} tables with numbers the density is among the best on {nlpd}, the CRPS on {crps},
        the mean on {rmse}; of {labels} with labels the probabilities on {nll}, the label itself on
        {error}. The 90% intervals hold {covered.mean():.1%} of the test rows, and
        {covered.min():.0%} to {covered.max():.0%} of each table's. A fit takes {seconds.min():.0f}
        to {seconds.max():.0f} seconds of processor time, compilation included: a hundred times what
        a forest needs, and about what an exact GP with three restarts does."""
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


BLOCKS: dict[str, Callable[[], str]] = {
    "comparison, numbers": partial(_comparison_table, "regression"),
    "comparison, labels": partial(_comparison_table, "classification"),
    "comparison, counts": _counts,
    "comparison, claim": _claim,
    **STUDY_BLOCKS,
    **SPEED_BLOCKS,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
