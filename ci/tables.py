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

import numpy as np
import pandas as pd
from speed_tables import BLOCKS as SPEED_BLOCKS
from speed_tables import as_table

from gpflow_dwp.lab.comparison.scoreboard import comparison_frame, comparison_scores
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.study._report_text import estimate, printed
from gpflow_dwp.lab.study.frame import configurations, read_results_table, results_frame
from gpflow_dwp.lab.study.published import PRINTED_NAMES, published_scores
from gpflow_dwp.lab.study.report import markdown_table
from gpflow_dwp.lab.study.results import Record, read_results
from gpflow_dwp.lab.study.tables import (
    AGREEMENT,
    density_table,
    model_ranks,
    paired_differences,
    score_table,
)

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
_METRICS = {"elbo": "ELBO", "test_log_likelihood": "test log-likelihood", "rmse": "RMSE"}
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
def _study(folder: str) -> pd.DataFrame:
    return pd.concat(map(read_results_table, sorted((_RESULTS / folder).glob("*.csv"))))


def _of_last_recipe(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that have several splits, by the last recipe that has any."""
    cells = cells[cells["dtype"] == "float64"]
    last = cells.groupby(["dataset", "depth"])["recipe"].transform("max")
    cells = cells[cells["recipe"] == last]
    return cells[cells.groupby(["dataset", "depth", "model"])["split"].transform("size") > 1]


def _regression() -> pd.DataFrame:
    """Cells of the regression output."""
    cells = _study("uci")
    return _of_last_recipe(cells[cells["options"] == '{"output": "regression"}'])


def _minibatches() -> pd.DataFrame:
    """Cells of minibatches by the fast protocol."""
    cells = _study("uci")
    is_fast = (
        (cells["protocol"] == "fast") & cells["options"].isna() & (cells["num_steps"] == 20_000)
    )
    return _of_last_recipe(cells[is_fast & cells["batch_size"].notna()])


def _scores(cells: pd.DataFrame) -> str:
    parts = [
        f"{title[0].upper()}{title[1:]}:\n\n{markdown_table(cells, metric)}"
        for metric, title in _METRICS.items()
    ]
    return "\n\n".join(parts)


def _study_distances() -> str:
    """Measured less printed, in combined standard errors."""
    scores = score_table(_regression())
    scores = scores[scores["metric"].isin(_METRICS)]
    counts = scores["improved_verdict"].value_counts()
    within, better, worse = (counts.get(name, 0) for name in ("within", "better", "worse"))
    text = (
        f"Of {within + better + worse} printed cells {within} are within {AGREEMENT:g} combined "
        f"standard errors, {better} better and {worse} worse."
    )
    table = scores.assign(score=scores["metric"].map(_METRICS))
    table = table.pivot(
        index=["score", "dataset", "depth"], columns="model", values="improved_difference_in_se"
    )
    names = [name for name in PRINTED_NAMES if name in table]
    table = (
        table[names].rename(columns=PRINTED_NAMES).map(lambda z: "" if np.isnan(z) else f"{z:+.1f}")
    )
    return f"{text}\n\n{as_table(table.reset_index().to_dict('records'))}"


def _study_differences() -> str:
    differences = paired_differences(_regression())
    differences = differences[differences["metric"] == "elbo"]
    rows: dict[tuple[str, int], dict[str, str]] = {}
    for row in differences.itertuples():
        line = rows.setdefault(
            (row.dataset, row.depth), {"data set": row.dataset, "depth": str(row.depth)}
        )
        text = _estimate(row.mean, row.standard_error)
        if in_print := printed(row.printed_mean, row.printed_standard_error):
            text += f" ({in_print})"
        line[f"{PRINTED_NAMES[row.model]} − {PRINTED_NAMES[row.baseline]}"] = text
    return as_table(rows.values())


def _study_ranks() -> str:
    ranks = model_ranks(_regression())
    ranks = ranks[ranks["metric"].isin(_METRICS)]
    rows = [
        {"score": _METRICS[metric]}
        | {PRINTED_NAMES[row.model]: f"{row.mean_rank:.2f}" for row in block.itertuples()}
        | {"comparisons": str(block["comparisons"].max())}
        for (metric, _), block in ranks.groupby(["metric", "compared"], sort=False)
    ]
    return as_table(rows)


@cache
def _grown() -> pd.DataFrame:
    return pd.read_csv(_RESULTS / "depth" / "depth.csv")


def _depth() -> str:
    """Bounds of models that grew layer by layer, beside print."""
    scores = published_scores().query("paper == 'improved' and metric == 'elbo'")
    means = scores.set_index(["dataset", "depth", "model"])["mean"]
    bounds = _grown().pivot(index=["dataset", "model"], columns="depth", values="elbo")
    rows = []
    for (dataset, model), values in bounds.iterrows():
        row = {"data set": dataset, "model": PRINTED_NAMES[model]}
        for depth, bound in values.items():
            mean = means.get((dataset, depth, model))
            row[str(depth)] = f"{bound:.3f}" + ("" if mean is None else f" ({mean:.2f})")
        rows.append(row)
    return as_table(rows)


def _divergences() -> str:
    """Nats of each layer of some of the models that grew."""
    cells = _grown()[_grown()["depth"].isin([2, 4, 7])]
    rows = []
    for row in cells.sort_values(["dataset", "model", "depth"]).itertuples():
        *hidden, output = (f"{float(nats):.0f}" for nats in row.divergences.split("; "))
        rows.append(
            {
                "data set": row.dataset,
                "model": PRINTED_NAMES[row.model],
                "depth": str(row.depth),
                "hidden layers, bottom first": ", ".join(hidden),
                "output": output,
            }
        )
    return as_table(rows)


def _networks() -> str:
    cells = _study("matrix_gaussian")
    return "\n\n".join(
        f"{title[0].upper()}{title[1:]}:\n\n{markdown_table(cells, metric, paper='vmg')}"
        for metric, title in _METRICS.items()
        if metric != "elbo"
    )


def _densities() -> str:
    cells = _study("densities")
    steps = configurations(cells).set_index("configuration")["num_steps"]
    rows = [
        {
            "data set": row.dataset,
            "model": f"{row.model}, {row.inference}",
            "steps": f"{steps[row.configuration]:,}",
            "exact": f"{row.exact:.2f}",
            "kernel estimate": f"{row.kernel:.2f}",
            "print": printed(row.printed_mean, row.printed_standard_error),
            "exact, over the GP": _estimate(row.over_gp, row.over_gp_standard_error),
            "exact, over VI": _estimate(row.over_vi, row.over_vi_standard_error),
        }
        for row in density_table(cells).itertuples()
    ]
    return as_table(rows)


def _estimate(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else estimate(mean, error)


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
        not](notebooks/how-to/when_to_use_it.md)): one thread of a 2-core AMD EPYC, float64, the
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
    "regression output, scores": lambda: _scores(_regression()),
    "larger sets, scores": lambda: _scores(_minibatches()),
    "regression output, distances": _study_distances,
    "regression output, paired differences": _study_differences,
    "regression output, ranks": _study_ranks,
    "depth, bounds": _depth,
    "depth, divergences": _divergences,
    "densities": _densities,
    "matrix-Gaussian networks": _networks,
    "comparison, numbers": partial(_comparison_table, "regression"),
    "comparison, labels": partial(_comparison_table, "classification"),
    "comparison, counts": _counts,
    "comparison, claim": _claim,
    **SPEED_BLOCKS,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
