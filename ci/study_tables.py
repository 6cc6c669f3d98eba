"""Tables of the studies, from the cells in ci/results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from speed_tables import as_table

from gpflow_dwp.lab.study._report_text import estimate, printed
from gpflow_dwp.lab.study.frame import configurations, read_results_table
from gpflow_dwp.lab.study.published import PRINTED_NAMES, published_densities, published_scores
from gpflow_dwp.lab.study.report import markdown_table
from gpflow_dwp.lab.study.tables import (
    AGREEMENT,
    density_table,
    model_ranks,
    paired_differences,
    score_table,
)

_RESULTS = Path(__file__).with_name("results")
_METRICS = {"elbo": "ELBO", "test_log_likelihood": "test log-likelihood", "rmse": "RMSE"}


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
    means = _printed_bounds()["mean"]
    bounds = _grown().pivot(index=["dataset", "model"], columns="depth", values="elbo")
    rows = []
    for (dataset, model), values in bounds.iterrows():
        row = {"data set": dataset, "model": PRINTED_NAMES[model]}
        for depth, bound in values.items():
            mean = means.get((dataset, depth, model))
            row[str(depth)] = f"{bound:.3f}" + ("" if mean is None else f" ({mean:.2f})")
        rows.append(row)
    return as_table(rows)


def _printed_bounds() -> pd.DataFrame:
    scores = published_scores().query("paper == 'improved' and metric == 'elbo'")
    return scores.set_index(["dataset", "depth", "model"])[["mean", "standard_error"]]


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


def _with_ard(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """The deep GP with lengthscales for all features as a model of its own; which cells have it."""
    has_ard = cells["options"].str.contains("hidden_ard", na=False)
    return cells.assign(model=cells["model"].mask(has_ard, "DGP, ARD")), has_ard


def _papers_protocol() -> str:
    """Bounds by 20,000 steps of ten draws, of each split's last cell, beside print."""
    cells, has_ard = _with_ard(_study("uci"))
    is_theirs = (cells["num_samples"] == 10) & (cells["num_steps"] == 20_000)
    is_whole = cells["batch_size"].isna() & (cells["dtype"] == "float64")
    cells = cells[is_theirs & is_whole & (has_ard | cells["options"].isna())]
    cells = cells.fillna({"kl_annealing_steps": 1_000})
    place = ["dataset", "depth", "kl_annealing_steps", "model"]
    last = cells.sort_values("recipe", kind="stable").drop_duplicates(
        [*place, "split"], keep="last"
    )
    in_print, models = _printed_bounds(), ("DGP, ARD", "DGP", "GW", "A", "AB")
    empty = {PRINTED_NAMES.get(m, m): "" for m in models}
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for (dataset, depth, annealing, model), block in last.groupby(place):
        splits, bounds = sorted(block["split"]), block["elbo"]
        text, several = f"{bounds.mean():.3f}", f"{splits[0]}"
        if len(splits) > 1:
            text = estimate(bounds.mean(), bounds.sem(), len(bounds))
            several = f"{splits[0]} to {splits[-1]}"
        key = (dataset, f"{depth}", f"{annealing:,}", several)
        beside = printed(*in_print.loc[(dataset, depth, model.split(",")[0])])
        row = rows.setdefault(key, dict(empty))
        row[PRINTED_NAMES.get(model, model)] = f"{text} ({beside})"
    titles = ("data set", "depth", "annealing", "splits")
    return as_table([dict(zip(titles, key, strict=True)) | row for key, row in rows.items()])


def _one_set_by_protocol() -> str:
    """Bounds of split 0 of kin8nm by what was asked for, beside print."""
    cells, has_ard = _with_ard(_study("uci").query("dataset == 'kin8nm' and split == 0"))
    cells = cells[(cells["depth"] == 2) & (cells["dtype"] == "float64")]
    cells = cells[cells["kl_annealing_steps"].isna()]
    is_regression = cells["options"].str.contains("regression", na=False)
    is_learned = ~cells["options"].str.contains(":", na=False) & (cells["num_steps"] == 20_000)
    whole = "--batch-size 10000 --set output=regression"
    asked = {
        "nothing else": is_learned & (cells["num_samples"] == 2),
        "`--protocol papers` instead, ten draws": is_learned & (cells["num_samples"] == 10),
        f"`--steps 3000 {whole}`": is_regression & (cells["num_steps"] == 3_000),
        f"`--steps 10000 {whole}`": is_regression & (cells["num_steps"] == 10_000),
    }
    in_print, models = _printed_bounds()["mean"], ("AB", "DGP", "DGP, ARD")
    rows = [{"": "print"}]
    for model in models[:2]:
        rows[0][PRINTED_NAMES[model]] = f"{in_print['kin8nm', 2, model]:.2f}"
    for title, chosen in asked.items():
        last = cells[chosen].sort_values("recipe", kind="stable").groupby("model")["elbo"].last()
        row = {PRINTED_NAMES.get(m, m): f"{last[m]:.3f}" if m in last else "" for m in models}
        rows.append({"": title} | row)
    return as_table(rows)


def _inducing_points() -> str:
    """Scores by the number of inducing points, of cells that differ in nothing else."""
    more, fewer = (
        _study(folder).astype({"options": "string"}) for folder in ("inducing_points", "uci")
    )
    same = ["dataset", "depth", "split", "model", "num_steps", "batch_size", "options"]
    fewer = fewer.query("num_samples == 2 and protocol == 'fast' and dtype == 'float64'")
    fewer = fewer.sort_values("recipe", kind="stable").drop_duplicates(same, keep="last")
    cells, _ = _with_ard(pd.concat([fewer.merge(more[same].drop_duplicates()), more]))
    in_print = published_scores().query("paper == 'improved'")
    in_print = in_print.set_index(["dataset", "depth", "metric", "model"])["mean"]
    rows = []
    for (dataset, depth, model), block in cells.groupby(["dataset", "depth", "model"]):
        for metric in ("elbo", "test_log_likelihood"):
            found = block.set_index("num_inducing")[metric].sort_index()
            row = {"data set": dataset, "model": PRINTED_NAMES.get(model, model)}
            row |= {"score": _METRICS[metric]} | {f"M = {m}": f"{x:.3f}" for m, x in found.items()}
            mean = in_print[dataset, depth, metric, model.split(",")[0]]
            rows.append(row | {"print": f"{mean:.2f}"})
    return as_table(rows)


def _printed_split() -> str:
    """Densities on the split that the paper of densities seems to have printed, by steps."""
    cells = _study("printed_split")
    printed_means = published_densities().set_index(["dataset", "model", "inference"])["mean"]
    rows = []
    for row in cells.sort_values(
        ["dataset", "model", "num_importance_samples", "num_steps"]
    ).itertuples():
        inference = "VI" if row.num_importance_samples == 1 else "IWVI"
        rows.append(
            {
                "data set": row.dataset,
                "model": f"{row.model}, {inference}",
                "steps": f"{row.num_steps:,}",
                "bound": f"{row.elbo:.3f}",
                "exact": f"{row.log_likelihood_standardised:.2f}",
                "kernel estimate": f"{row.log_likelihood_kernel:.2f}",
                "print, 100,000 steps": f"{printed_means[row.dataset, row.model, inference]:.2f}",
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


BLOCKS: dict[str, Callable[[], str]] = {
    "regression output, scores": lambda: _scores(_regression()),
    "larger sets, scores": lambda: _scores(_minibatches()),
    "regression output, distances": _study_distances,
    "regression output, paired differences": _study_differences,
    "regression output, ranks": _study_ranks,
    "depth, bounds": _depth,
    "depth, divergences": _divergences,
    "papers' protocol": _papers_protocol,
    "larger sets, kin8nm": _one_set_by_protocol,
    "larger sets, inducing points": _inducing_points,
    "densities": _densities,
    "densities, printed split": _printed_split,
    "matrix-Gaussian networks": _networks,
}
