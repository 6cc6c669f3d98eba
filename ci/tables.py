"""Write tables and a figure of the pages from ci/results: `python ci/tables.py [--check]`.

What stands between `<!-- table: NAME -->` and `<!-- end -->` in a page is written here, sentences
included, and so are the figures of comparison and growth. With --check nothing is written, and a
page that differs is an error.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from comparison import CLASSIFICATION, NAMES, OF_MANY_ROWS, comparison_scores
from matplotlib.figure import Figure
from uci.tables import KEPT, as_markdown

ROOT = Path(__file__).resolve().parents[1]
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
_SHAPES = ("yacht-2", "yacht-5", "protein-5", "large-3")
_STEPS = {
    "AB / its linear algebra alone": "AB step float64 / AB floor float64",
    "AB / the same by TensorFlow's kernels": "AB step float64 / AB floor by TensorFlow float64",
    "AB / GW": "AB step float64 / GW step float64",
    "AB / deep GP": "AB step float64 / DGP step float64",
    "whitened A / A": "A-whitened step float64 / A step float64",
    "AB / GPflux": "AB step float64 / gpflux step float64",
    "AB / GPyTorch": "AB step float64 / gpytorch step float64",
    "whitened A / GPflux": "A-whitened step float64 / gpflux step float64",
    "whitened A / GPyTorch": "A-whitened step float64 / gpytorch step float64",
    "default / GPflux": "default step float64 / gpflux step float64",
    "default / GPyTorch": "default step float64 / gpytorch step float64",
    "default / gradient of GPflow's GPR": "default step float64 / gpflow step float64",
    "default / gradient of GPflow's SVGP": "default step float64 / svgp step float64",
    "default / gradient of GPyTorch's exact GP": "default step float64 / gpytorch-gp step float64",
    "AB, float32 / float64": "AB step float32 / AB step float64",
    "AB, ms": "AB step float64, ms",
    "default, ms": "default step float64, ms",
    "first step of AB, with tracing, s": "AB step float64, first step, s",
}
_WAYS = {"select_model": "`select_model`", "fast": "`fit`, default", "papers": "`fit`, papers'"}
_EMULATORS = {
    "ours": "default",
    "single": "one layer",
    "gp": "scikit-learn's GP",
    "dgpsi-gp": "dgpsi's GP",
    "dgpsi-dgp": "dgpsi's two layers",
}
_OF_LEVELS = {
    "ours": "default",
    "single": "one layer",
    "matern52": "one layer, `Matern52`",
    "gp": "scikit-learn's GP",
}
_FUNCTIONS = {
    "schaffer4": "Schaffer's fourth, 100 runs",
    "swirl-large": "swirl, 100 runs",
    "xiong": "Xiong, 30 runs",
    "gramacy_lee_noisy": "Gramacy and Lee with noise, 100 runs",
    "step": "a step with noise, 40 rows",
    "three_steps": "three steps with noise, 80 rows",
    "cliff": "a cliff with noise, 150 rows",
    "ignition-small": "ignition, ten inputs, 200 runs",
    "ignition-large": "ignition, ten inputs, 1,000 runs",
    "g_function": "g-function, four inputs, 200 runs",
    "borehole": "borehole, eight inputs, 150 runs",
    "friedman": "Friedman with noise, 150 rows",
}
_FAMILIES = {"A": "A-GW", "AB": "AB-GW", "A-whitened": "A-GW, whitened"}
_DATASETS = ("yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein")


def filled(text: str) -> str:
    """A page with its blocks as the results have them."""
    return _BLOCK.sub(lambda block: f"{block['name']} -->\n{BLOCKS[block['name']]()}\n", text)


def main(arguments: list[str]) -> int:
    """Write the pages, or say which would change."""
    pages = [ROOT / "README.md", *sorted((ROOT / "notebooks").rglob("*.md"))]
    changed = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            changed.append(page.name)
            if not arguments:
                page.write_text(filled(text), encoding="utf-8")
    if not arguments:
        plot_relative_scores(_comparison()[1]).savefig(KEPT / "relative.png")
        plot_growth().savefig(KEPT / "growth.png")
    print(*changed or ["all pages have the numbers of ci/results"], sep="\n")
    return int(bool(changed) and bool(arguments))


@cache
def _comparison(name: str = "comparison") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells of the splits for claims, and their scores."""
    lines = map(json.loads, (KEPT / f"{name}.jsonl").read_text().splitlines())
    cells = pd.DataFrame(line for line in lines if line["split"] < 5)
    return cells, comparison_scores(cells.to_dict("records"))


def plot_relative_scores(scores: pd.DataFrame) -> Figure:
    """Draw each model's distance to the best, a row for each table: the further left the better.

    That of numbers is linear up to 0.1 and logarithmic beyond; what is more than 3 is drawn at 3.
    """
    shown = {
        "nlpd": "NLPD less that of the best (nats)",
        "crps": "CRPS over that of the best, less 1",
        "nll": "NLL less that of the best (nats)",
        "error": "error less that of the best",
    }
    figure = Figure((9.0, 9.5), dpi=150, layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(5, 1), sharey="row")
    for ax, (metric, title) in zip(panels.ravel(), shown.items(), strict=True):
        rows = scores[scores["metric"] == metric]
        means = rows.pivot(index="table", columns="label", values="mean")
        best = means.min(axis=1)
        distance = means.div(best, axis=0) - 1 if metric == "crps" else means.sub(best, axis=0)
        for label, marker in zip(NAMES, "sv^DPoXd", strict=True):
            if label in distance:
                own = {"color": "black", "zorder": 3} if label == "dwp" else {"alpha": 0.8}
                ax.plot(distance[label].clip(0, 3), distance.index, marker, label=label, **own)
        if metric in ("nlpd", "crps"):
            ax.set_xscale("symlog", linthresh=0.1)
        ax.set_xlabel(title)
        ax.grid(axis="y", color="#EEEEEE")
        ax.legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _comparison_table(task: str, title: str) -> str:
    """The deep Wishart process beside the best of its rivals, table by table."""
    cells, scores = _comparison("few_rows") if task == "few rows" else _comparison()
    cells = cells[cells["table"].isin(CLASSIFICATION) == (task == "classification")]
    scores = scores.set_index(["metric", "table", "label"]).sort_index()
    metrics = ("nll", "error") if task == "classification" else ("nlpd", "crps", "rmse")
    rows = []
    for table, block in cells.groupby("table", sort=False):
        row = {title: str(table).replace("_", " ")}
        for metric in metrics:
            values = block.pivot(index="split", columns="label", values=metric).dropna(axis=1)
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
        row["CPU s"] = f"{block.loc[block['label'] == 'dwp', 'fit_seconds'].mean():.0f}"
        rows.append(row)
    return as_markdown(rows)


def _many_rows() -> str:
    """Models of tables of many rows."""
    lines = map(json.loads, (KEPT / "many_rows.jsonl").read_text().splitlines())
    labels = {"dwp": "default", "svgp": "SVGP"} | _RIVALS
    rows = []
    for table, block in pd.DataFrame(list(lines)).groupby("table", sort=False):
        for metric, name in {**dict(islice(_SCORES.items(), 3)), "fit_seconds": "CPU s"}.items():
            found = block.set_index("label")[metric]
            row = {"": f"{table}, {name}"}
            for label in (label for label in labels if label in OF_MANY_ROWS):
                number = _number(metric, found[label]) if label in found else ""
                is_best = metric in _SCORES and label == found.idxmin()
                row[labels[label]] = f"**{number}**" if is_best else number
            rows.append(row)
    return as_markdown(rows)


def _number(metric: str, value: float, sign: str = "") -> str:
    if metric in ("nlpd", "nll", "error"):
        return f"{value:{sign}.3f}"
    return f"{value:{sign},.0f}" if abs(value) >= 1_000 else f"{value:{sign}.3g}"


def _own(name: str) -> pd.Series:
    """Means of the deep Wishart process by table."""
    cells, _ = _comparison()
    return cells[cells["label"] == "dwp"].groupby("table")[name].mean().dropna()


def _won(metric: str) -> tuple[int, int]:
    """On how many tables it is among the best by a score, and of how many."""
    _, scores = _comparison()
    own = scores[(scores["metric"] == metric) & (scores["label"] == "dwp")]
    return int(own["among_best"].sum()), len(own)


def _claim() -> str:
    (won, of), (crps, _), seconds = _won("nlpd"), _won("crps"), _own("fit_seconds")
    seconds = seconds.drop(list(CLASSIFICATION))
    return _paragraph(
        f"""For densities, intervals and quantiles that can be believed, of tables of up to some
        thousand rows. With its defaults, on {of} real tables with numbers, six of them counts,
        zeros and bounded scores, beside exact GPs, boosting, forests, NGBoost and linear
        models, it has the best mean density of three splits, or is within one paired standard
        error of it, on {won}, and the best CRPS on {crps}, in {seconds.min():.0f} to
        {seconds.max():.0f} CPU seconds a fit ([when to use it, and when
        not](notebooks/how-to/when_to_use_it.md)): one thread of a 2-core Intel Xeon that other
        processes shared, float64, the split as the seed, by `python ci/comparison.py run --out
        comparison --splits 0-2`."""
    )


def _counts() -> str:
    cells, _ = _comparison()
    covered, seconds = _own("coverage_90"), cells.loc[cells["label"] == "dwp", "fit_seconds"]
    usual = cells[~cells["table"].isin([*CLASSIFICATION])].groupby("label")["fit_seconds"].median()
    times = usual["dwp"] / usual
    (nlpd, of), (crps, _), (rmse, _) = map(_won, ("nlpd", "crps", "rmse"))
    (nll, labels), (error, _) = map(_won, ("nll", "error"))
    return _paragraph(
        f"""Of {of} tables with numbers the density is among the best on {nlpd}, the CRPS on {crps},
        the mean on {rmse}; of {labels} with labels the probabilities on {nll}, the label itself on
        {error}. The 90% intervals hold {covered.mean():.1%} of the test rows, and
        {covered.min():.0%} to {covered.max():.0%} of each table's. A fit takes {seconds.min():.0f}
        to {seconds.max():.0f} seconds of processor time, compilation included: of numbers some
        {round(times["random-forest"], -1):.0f} times what a forest needs, and
        {times["exact-gp"]:.0f} times what an exact GP with three restarts does."""
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


@cache
def _benchmark(name: str) -> dict[str, pd.DataFrame]:
    """Figures of each thing that was measured, by their names."""
    table = pd.read_csv(KEPT / "benchmarks.csv", float_precision="round_trip")
    table = table[table["benchmark"] == name]
    return {s: rows.set_index("name") for s, rows in table.groupby("subject", sort=False)}


def _steps() -> str:
    """Times of steps; where something is meant of one, what."""
    shapes, rows = _benchmark("step"), []
    for label, name in _STEPS.items():
        found = {shape: shapes[shape].loc[name] for shape in _SHAPES if name in shapes[shape].index}
        meant = {figure["at_most"] for figure in found.values() if pd.notna(figure["at_most"])}
        row = {"": label, "meant: at most": f"{meant.pop():g}" if meant else ""}
        rows.append(row | {s: _with_spread(found[s]) if s in found else "" for s in _SHAPES})
    return as_markdown(rows)


def _with_spread(figure: pd.Series) -> str:
    value, spread = figure["value"], figure["spread"]
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}" + (f" ({spread:.{digits}f})" if spread else "")


def _bounds() -> str:
    """Time until a bound is reached, by the package's own ways and by the papers' protocol."""
    rows = []
    for label, figures in _benchmark("bound").items():
        value = figures["value"].to_dict()
        row = {"data set": label, "ELBO above": f"{value['level']:g}"}
        row |= {heading: _reached(value, way) for way, heading in _WAYS.items()}
        seconds = [value[f"{way}, s"] for way in ("fast", "select_model") if f"{way}, s" in value]
        share = f"{min(seconds) / value.get('papers, s', value['papers, all s']):.2f}"
        row["least / papers'"] = share if "papers, s" in value else f"below {share}"
        rows.append(row)
    return as_markdown(rows)


def _reached(value: dict[str, float], way: str) -> str:
    if f"{way}, s" in value:
        return f"{value[f'{way}, steps']:,.0f} steps, {value[f'{way}, s']:.0f} CPU s"
    if f"{way}, all s" not in value:
        return ""
    return f"never: {value[f'{way}, last bound']:.3f} after {value[f'{way}, all s']:,.0f} CPU s"


def _rounding() -> str:
    """Errors of float32's gradients over their size: median over groups of parameters, largest."""
    found = {name: figures["value"] for name, figures in _benchmark("rounding").items()}
    return as_markdown(
        {"median, largest": label}
        | {d: f"{found[d][f'{f}, median']:.4f}, {found[d][f'{f}, largest']:.3f}" for d in _DATASETS}
        for f, label in _FAMILIES.items()
    )


def _gpu() -> str:
    """Steps on a GPU, with XLA and without, beside the CPU's."""
    devices = ("CPU", "GPU", "GPU, XLA")
    found = {shape: figures["value"].to_dict() for shape, figures in _benchmark("gpu").items()}
    found = {shape: on for shape, on in found.items() if "CPU, ms" in on}
    return as_markdown(
        {"": shape}
        | {f"{d}, ms": f"{on[f'{d}, ms']:,.0f}" if f"{d}, ms" in on else "" for d in devices}
        | {
            f"{d}, first, s": f"{on[f'{d}, first, s']:.0f}" if f"{d}, ms" in on else ""
            for d in devices
        }
        | {"GPU memory, GB": f"{on['GPU memory, GB']:.1f}"}
        for shape, on in sorted(found.items(), key=lambda item: item[1]["CPU, ms"])
    )


@cache
def _default_model() -> pd.DataFrame:
    """Means over seeds, by problem and method, and the depths that were chosen."""
    cells = pd.read_json(KEPT / "default_model.jsonl", lines=True)
    scores = ["nlpd", "crps", "cpu_seconds", "peak_gb", "num_data"]
    table = cells.groupby(["name", "method"])[scores].mean()
    depths = cells.dropna(subset="depth").groupby(["name", "method"])["depth"]
    return table.assign(depth=depths.agg(lambda each: ", ".join(f"{d:.0f}" for d in each)))


def _functions() -> str:
    headings = {"exact": "exact GP", "depth 1": "single layer", "default": "default"}
    rows = []
    for name, function in _FUNCTIONS.items():
        cells = _default_model().loc[name]
        row = {"function": function}
        for method, heading in headings.items():
            row[heading] = f"{cells.loc[method, 'nlpd']:.2f} / {cells.loc[method, 'crps']:.2g}"
        own = cells.loc["default"]
        rows.append(row | {"its depths": own["depth"], "CPU s": f"{own['cpu_seconds']:.0f}"})
    return as_markdown(rows)


_COSTS = {"cpu_seconds": "CPU seconds", "peak_gb": "peak memory, GB"}


def _cells_of_growth(
    method: str = "default",
) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Costs by the number of rows, and to which power of it they grow in the last step."""
    cells = _default_model().reset_index().sort_values("num_data")
    cells = cells[cells["name"].str.startswith("rows-") & (cells["method"] == method)]
    growth, *slopes = np.diff(np.log(cells[["num_data", *_COSTS]].to_numpy(float)), axis=0)[-1]
    return cells, slopes / growth


def plot_growth() -> Figure:
    """Draw what a fit costs by the number of rows: the default, and two layers in minibatches."""
    figure = Figure((9.0, 3.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, 2)
    for method, colour in (("default", "black"), ("minibatches", "C1")):
        cells, slopes = _cells_of_growth(method)
        for ax, cost, slope in zip(panels, _COSTS, slopes, strict=True):
            rows, last = cells["num_data"], cells.iloc[-1]
            ax.loglog(rows, cells[cost], "o-", color=colour, label=method)
            along = rows.iloc[-2] * np.array([1.0, 30.0])
            line = last[cost] * (along / last["num_data"]) ** slope
            label = f"rows to the power of {slope:.2f}"
            ax.plot(along, line, "--", color=colour, label=label)
    for ax, title in zip(panels, _COSTS.values(), strict=True):
        ax.set(xlabel="rows", ylabel=title)
        ax.grid(which="both", color="#EEEEEE")
        ax.legend()
    return figure


def _growth() -> str:
    cells, (time, memory) = _cells_of_growth()
    alone, _ = _cells_of_growth("minibatches")
    rows = [
        {
            "rows": f"{cell.num_data:,.0f}",
            "CPU s": f"{cell.cpu_seconds:.0f}",
            "peak memory, GB": f"{cell.peak_gb:.1f}",
            "minibatches: CPU s": f"{other.cpu_seconds:.0f}",
            "GB": f"{other.peak_gb:.1f}",
        }
        for cell, other in zip(cells.itertuples(), alone.itertuples(), strict=True)
    ]
    told = f"""In the last line a default fit's time grows with the rows to the power of {time:.2f},
        its memory to that of {memory:.2f}."""
    return f"{as_markdown(rows)}\n\n{_paragraph(told)}"


def _growth_errors() -> str:
    lines = map(json.loads, (KEPT / "growth/results.jsonl").read_text().splitlines())
    errors = pd.DataFrame(lines).pivot_table("rmse", "num_runs", "function", sort=False)
    rows = [
        {"rows": f"{size:,}", **{name: f"{error:.2g}" for name, error in row.items()}}
        for size, row in errors.sort_index().iterrows()
    ]
    return as_markdown(rows)


@cache
def _emulators(score: str = "crps_sd", file: str = "emulators") -> pd.DataFrame:
    """Means by function and method, over the seeds that all methods of a function were run for."""
    lines = map(json.loads, (KEPT / f"{file}.jsonl").read_text().splitlines())
    cells = pd.DataFrame(lines).dropna(subset="crps_sd")
    of_function = cells.groupby("function")["method"].transform("nunique")
    cells = cells[cells.groupby(["function", "seed"])["method"].transform("count") == of_function]
    if score == "seed":
        return cells.groupby("function")["seed"].nunique()
    table = cells.pivot_table(score, "function", "method", sort=False)
    headings = _EMULATORS if file == "emulators" else _OF_LEVELS
    return table.reindex(columns=list(headings)).dropna(subset="ours")


def _emulators_table(file: str, headings: dict[str, str]) -> str:
    wanted = "crps_sd", "coverage", "cpu_s", "seed"
    scores, coverage, seconds, seeds = (_emulators(each, file) for each in wanted)
    rows = []
    for function, row in scores.iterrows():
        cells = {"function": function, "designs": f"{seeds[function]}"}
        for method, heading in headings.items():
            cells[heading] = "not run"
            if pd.notna(row[method]):
                best = "**" if row[method] == row.min() else ""
                cells[heading] = (
                    f"{best}{row[method]:.3g}{best}, {coverage.loc[function, method]:.0%}, "
                    f"{seconds.loc[function, method]:.0f} s"
                )
        rows.append(cells)
    return as_markdown(rows)


def _emulators_counts() -> str:
    scores, seconds = _emulators(), _emulators("cpu_s")
    own, deep = scores["ours"], scores["dgpsi-dgp"].dropna()
    ahead = int((own[deep.index] < deep).sum())
    fast = int((seconds["ours"] < 0.25 * seconds["dgpsi-dgp"]).sum())
    worse = own[own > 1.1 * scores["single"]].index
    behind = own[own > 1.1 * scores[["gp", "dgpsi-gp"]].min(axis=1)].index
    return _paragraph(
        f"""The default is ahead of dgpsi's two layers on {ahead} of {len(deep)} functions, and
        takes less than a quarter of its time on {fast}. Its CRPS is above 1.1 times that of its own
        single layer on {", ".join(worse) or "none"}, and above 1.1 times that of the best of
        the others' Gaussian processes on {", ".join(behind) or "none"}."""
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "comparison, numbers": partial(_comparison_table, "regression", "table"),
    "comparison, labels": partial(_comparison_table, "classification", "table of labels"),
    "comparison, counts": _counts,
    "comparison, claim": _claim,
    "comparison, few rows": partial(_comparison_table, "few rows", "table of few rows"),
    "comparison, many rows": _many_rows,
    "default model, functions": _functions,
    "default model, growth": _growth,
    "growth, errors": _growth_errors,
    "emulators": partial(_emulators_table, "emulators", _EMULATORS),
    "emulators, counts": _emulators_counts,
    "emulators, levels": partial(_emulators_table, "levels", _OF_LEVELS),
    "speed, steps": _steps,
    "speed, bounds": _bounds,
    "speed, rounding": _rounding,
    "speed, GPU": _gpu,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
