"""Tables of cells beside print: means over splits, and models against each other.

A standard error is the standard deviation over splits (divisor: splits less one) over the root of
their number; from 5 splits its own relative error is about 35%, from 3 it is 50%. Means are taken
over the splits of one configuration: of cells that are alike in all but the split. Where models are
compared, cells differ in the model alone.

Papers: "improved" is Ober, Anson, Milsom and Aitchison (2023), Tables 2 to 6; "original" Ober and
Aitchison (2021), Tables 2 to 4, whose "DWP" is the GW posterior here; "vmg" Louizos and Welling
(2016), Table 1, of one hidden layer, which is depth 2; "iwvi" Salimbeni, Dutordoir, Hensman and
Deisenroth (2019), Table 1, kernel density estimates in standardised units. "DIWP" of "original" is
what it quotes from Aitchison, Yang and Ober (2021), without errors. Means are over 20 splits, of
protein and in "iwvi" over 5, with two decimals. The improved paper's Table 4 combines the standard
errors of both means as if splits differed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

KEPT = Path(__file__).resolve().parents[1] / "results"
"""The results under version control."""

PAPERS = ("improved", "original", "vmg")
LARGEST_ROUNDING = 0.005
"""Half a unit of the last printed decimal: what a printed number may be off by."""
AGREEMENT = 3.0
"""Combined standard errors within which a measured and a printed mean are said to agree."""
LARGER_IS_BETTER = {"elbo": True, "test_log_likelihood": True, "rmse": False, "crps": False}
# Those of the improved paper's Table 4, then all against the deep GP.
_PAIRS = [("A", "GW"), ("AB", "GW"), ("A", "AB")]
_PAIRS += [(model, "DGP") for model in ("GW", "A", "AB", "DIWP")]

_MODELS = (
    *("DGP", "DIWP", "GW", "A", "AB", "VMG", "GP", "GP-GP", "GP-GP-GP"),
    *("LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "GP-LV-GP"),
)
NAMES = {name: f"{name}-GW" if name in ("A", "AB") else name for name in _MODELS}
"""How the papers write the models that are called by shorter names here, in the order of tables."""

_PLACE = ["dataset", "depth", "model", "configuration"]
_CONFIGURATION = [
    *("recipe", "num_steps", "num_inducing", "num_samples", "num_prediction_samples", "dtype"),
    *("seed", "kl_annealing_steps", "protocol", "options", "batch_size", "num_importance_samples"),
]
# What only some models have: latent variables, other draws.
_OF_THE_MODEL = {"num_importance_samples", "num_samples", "options"}
_KERNEL, _EXACT = "log_likelihood_kernel", "log_likelihood_standardised"
_TIMES = ["seconds_per_step", "seconds_per_epoch", "training_seconds"]


def as_frame(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each cell, in the order of tables, with the number of its configuration.

    :param lines: Objects of ``results.jsonl`` that did not fail.
    """
    cells = pd.DataFrame(list(lines))
    cells = cells.reindex(columns=list(dict.fromkeys([*cells.columns, *_CONFIGURATION])))
    is_object = cells["options"].map(lambda options: isinstance(options, dict))
    texts = cells["options"].map(lambda options: json.dumps(options, sort_keys=True))
    cells["options"] = cells["options"].mask(is_object, texts)
    cells[_CONFIGURATION] = cells[_CONFIGURATION].convert_dtypes()
    order = cells["model"].map(list(NAMES).index)
    cells = cells.assign(order=order).sort_values(
        ["dataset", "depth", "order", "split"], kind="stable", ignore_index=True
    )
    return cells.drop(columns="order").assign(configuration=_alike(cells, _CONFIGURATION))


def kept_cells(study: str = "uci", chosen: Callable[[Any], Any] = lambda c: c) -> pd.DataFrame:
    """The cells of a study under version control: uci, densities, inducing_points, ...

    :param chosen: Takes some of its rows; configurations are numbered among these.
    """
    with (KEPT / "study.jsonl").open() as file:
        lines = [line for line in map(json.loads, file) if line["study"] == study]
    found = chosen(as_frame(lines))
    return as_frame(found.drop(columns="configuration").to_dict("records"))


@cache
def _in_print() -> pd.DataFrame:
    table = pd.read_csv(KEPT / "printed.csv")
    short = {printed: model for model, printed in NAMES.items()}
    return table.assign(**{n: table[n].replace(short) for n in ("model", "baseline")})


def published(metric: str, paper: str | None = None) -> pd.DataFrame:
    """Printed means of a metric with their standard errors; see the top of this file."""
    table = _in_print()
    return table[(table["metric"] == metric) & (table["paper"].isin([paper] if paper else PAPERS))]


def score_table(cells: pd.DataFrame) -> pd.DataFrame:
    """The papers' scores, each mean over splits beside the printed ones.

    :return: One row for each metric, data set, depth, model and configuration: ``splits``,
        ``mean``, ``standard_error`` (NaN from one split), and for ``P`` each of the papers
        ``P_mean``, ``P_standard_error``, ``P_difference_in_se`` (measured minus printed, in
        combined standard errors, where a printed 0.00 counts as 0.005) and ``P_verdict``: "within"
        three of them, "better", "worse", "one split", or nothing where nothing is printed.
    """
    by = ["metric", *_PLACE]
    long = cells.melt(_PLACE, ["elbo", "test_log_likelihood", "rmse"], "metric")
    long = long[(long["metric"] != "elbo") | (long["model"] != "VMG")]  # its objective is no bound
    scores = _means(long, by, mean="value").rename(
        columns={"mean_standard_error": "standard_error"}
    )
    for paper in PAPERS:
        printed = _in_print()[_in_print()["paper"] == paper]
        scores = _beside(scores, printed, by[:-1], paper)
        difference = scores["mean"] - scores[f"{paper}_mean"]
        in_errors = difference / _combined(
            scores["standard_error"], scores[f"{paper}_standard_error"]
        )
        verdicts = {
            "": scores[f"{paper}_mean"].isna(),
            "one split": scores["standard_error"].isna(),
            "within": in_errors.abs() <= AGREEMENT,
            "better": (in_errors > 0.0) == scores["metric"].map(LARGER_IS_BETTER),
        }
        scores[f"{paper}_difference_in_se"] = in_errors
        scores[f"{paper}_verdict"] = np.select([*verdicts.values()], [*verdicts], "worse")
    return scores


def calibration_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Means over splits of the CRPS (raw units) and of the coverage of central intervals."""
    names = ("crps", "coverage_50", "coverage_90", "coverage_95")
    return _means(cells, _PLACE, **{name: name for name in names})


def runtime_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Mean times on one kind of machine, and of a step over the deep GP's on the same split.

    :return: With ``P_seconds_per_epoch``, as printed in paper ``P``, for its own machines: boston
        on a CPU (Intel Core i9-10900X), protein on a GPU (NVIDIA GeForce 2080 Ti).
    """
    where = ["machine", "threads"]
    on = ["dataset", "depth", "configuration", *where, "split"]
    dgp = cells.loc[cells["model"] == "DGP", [*on, "seconds_per_step"]]
    cells = cells.merge(dgp, how="left", on=on, suffixes=("", "_of_dgp"))
    cells["step_over_dgp"] = cells["seconds_per_step"] / cells["seconds_per_step_of_dgp"]
    grouped = cells.groupby([*_PLACE, *where], sort=False, dropna=False)
    times = (
        grouped[_TIMES]
        .mean()
        .assign(step_over_dgp=grouped["step_over_dgp"].median(), splits=grouped.size())
    )
    times = times.reset_index()
    for paper in PAPERS[:2]:
        printed = published("seconds_per_epoch", paper).rename(
            columns={"mean": "seconds_per_epoch"}
        )
        times = _beside(times, printed, _PLACE[:-1], paper, ["seconds_per_epoch"])
    return times


def paired_differences(cells: pd.DataFrame) -> pd.DataFrame:
    """Mean differences between models over the splits that both were measured on.

    :return: One row for each metric, data set, depth, pair and configuration: ``splits``, ``mean``
        of model minus baseline, its paired ``standard_error``, and ``printed_mean`` and
        ``printed_standard_error`` (ELBO only).
    """
    place = ["metric", "dataset", "depth", "configuration"]
    long = cells.melt([*_PLACE, "split"], list(LARGER_IS_BETTER), "metric")
    of_baseline = long.rename(columns={"model": "baseline", "value": "of_baseline"})
    both = pd.DataFrame(_PAIRS, columns=["model", "baseline"]).merge(long, on="model")
    both = both.merge(of_baseline, on=[*place, "split", "baseline"])
    both["difference"] = both["value"] - both["of_baseline"]
    found = _means(both, [*place, "model", "baseline"], mean="difference")
    found = found.rename(columns={"mean_standard_error": "standard_error"})
    order = found["metric"].map(list(LARGER_IS_BETTER).index)
    found = found.assign(order=order).sort_values(["order", *place[1:]], kind="stable")
    printed = published("elbo_difference", "improved").assign(metric="elbo")
    on = ["metric", "dataset", "depth", "model", "baseline"]
    return _beside(found.drop(columns="order"), printed, on, "printed")


def density_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Log-likelihoods of standardised test targets, means over splits, in nats per row.

    :return: One row for each data set, depth, model, ``inference`` ("VI", or "IWVI" with more than
        one importance sample) and configuration; ``kernel``, by kernel density estimates as what is
        printed; ``exact``, by the model's own density; ``shapiro_wilk``; ``printed_mean``;
        ``over_gp`` and ``over_vi``, mean paired differences of ``exact`` from the single-layer GP
        and from the same model by VI; each with ``_standard_error``.
    """
    cells = _densities(cells)
    by = ["dataset", "depth", "model", "inference", "configuration"]
    names = {"kernel": _KERNEL, "exact": _EXACT, "shapiro_wilk": "shapiro_wilk"}
    found = _means(cells, by, **names)
    on = ["dataset", "model", "inference"]
    found = _beside(found, published(_KERNEL, "iwvi"), on, "printed")
    for name in ("over_gp", "over_vi"):
        over = _means(cells.dropna(subset=[name]), by, **{name: name}).drop(columns="splits")
        found = found.merge(over, how="left", on=by)
    return found


def density_ranks(cells: pd.DataFrame) -> pd.DataFrame:
    """The last rows of the paper's Table 1: ranks of models of any depth, and gains over the GP.

    :return: One row for each set of models that was measured together (``compared``), model and
        ``inference``: ``mean_rank`` by ``exact``, from 1 for the best, and ``median_over_gp``, of
        means over splits, each over ``datasets``.
    """
    cells = _densities(cells)
    name = cells["model"].map(NAMES) + " " + cells["inference"]
    blocks = cells.assign(name=name).groupby(["dataset", "alike", "split"])
    cells["rank"] = blocks[_EXACT].rank(ascending=False)
    cells["compared"] = blocks["name"].transform(lambda names: ", ".join(sorted(set(names))))
    cells = cells[blocks[_EXACT].transform("size") > 1]
    by = ["compared", "model", "inference"]
    means = cells.groupby([*by, "dataset"], sort=False)[["rank", "over_gp"]].mean()
    return (
        means.groupby(by, sort=False)
        .agg(
            mean_rank=("rank", "mean"),
            median_over_gp=("over_gp", "median"),
            datasets=("rank", "size"),
        )
        .reset_index()
    )


def all_tables(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All of the above, by name, without those that are empty."""
    tables = {
        "scores": score_table(cells),
        "differences": paired_differences(cells),
        "runtimes": runtime_table(cells),
        "calibration": calibration_table(cells),
        "densities": density_table(cells),
        "density_ranks": density_ranks(cells),
    }
    return {name: table for name, table in tables.items() if len(table)}


def markdown_table(cells: pd.DataFrame, metric: str = "elbo", paper: str = "improved") -> str:
    """One metric as a Markdown table: a row for each data set and depth, a column for each model.

    A cell says "measured ± standard error (printed ± standard error)". Where one place has several
    configurations, each has a row, with its number.
    """
    scores = score_table(cells)
    scores = scores[scores["metric"] == metric].rename(columns={"dataset": "data set"})
    names = ["mean", "standard_error", f"{paper}_mean", f"{paper}_standard_error"]
    texts = [
        estimate(*row[:2]) + (f" ({in_print(*row[2:])})" if in_print(*row[2:]) else "")
        for row in scores[names].itertuples(index=False)
    ]
    place = ["data set", "depth", "configuration"]
    table = scores.assign(text=texts).pivot(index=place, columns="model", values="text").fillna("")
    table = table[[name for name in NAMES if name in table]].rename(columns=NAMES)
    ends = scores.groupby(place)["splits"].agg(["min", "max"]).to_numpy()
    table.insert(0, "splits", [f"{a}" if a == b else f"{a} to {b}" for a, b in ends])
    table = table.reset_index()
    if not table.duplicated(place[:2]).any():
        del table["configuration"]
    return as_markdown(table.to_dict("records"))


def as_markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """A table of GitHub's Markdown, numbers as they are given."""
    return pd.DataFrame(list(rows)).to_markdown(
        index=False, tablefmt="github", disable_numparse=True
    )


def estimate(mean: float, error: float) -> str:
    """A measured mean with its standard error, if there is one."""
    if not np.isfinite(mean):
        return "" if np.isnan(mean) else f"{mean:g}"
    decimals = 3 if max(abs(mean), np.nan_to_num(error)) >= 0.01 else 5
    return f"{mean:.{decimals}f}" + ("" if np.isnan(error) else f" ± {error:.{decimals}f}")


def in_print(mean: float, error: float) -> str:
    """A printed mean with its standard error, if there is one, or nothing."""
    if np.isnan(mean):
        return ""
    return f"{mean:.2f}" + ("" if np.isnan(error) else f" ± {error:.2f}")


def _densities(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that have densities, with differences from the GP and from VI on the same split."""
    cells = (
        cells[cells[_EXACT].notna()]
        if _EXACT in cells
        else cells.iloc[:0].assign(**{_EXACT: 0.0, _KERNEL: 0.0, "shapiro_wilk": 0.0})
    )
    others = [name for name in _CONFIGURATION if name not in _OF_THE_MODEL]
    cells = cells.assign(alike=_alike(cells, others))
    is_vi = ~(cells["num_importance_samples"].fillna(1) > 1).astype(bool)
    cells["inference"] = np.where(is_vi, "VI", "IWVI")
    cells["over_gp"] = _over(cells, is_vi & (cells["model"] == "GP"), [])
    cells["over_vi"] = _over(cells, is_vi, ["model", "depth"])
    return cells


def _alike(table: pd.DataFrame, columns: Sequence[str]) -> Any:
    """A number for each row, from 1, the same for rows that some columns say the same of."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup() + 1


def _means(table: pd.DataFrame, by: Sequence[str], **columns: str) -> pd.DataFrame:
    """Means of columns and their standard errors; a value that is not finite makes both so."""
    grouped = table.groupby(list(by), sort=False, dropna=False)
    found = {"splits": grouped.size()}
    for name, column in columns.items():
        found[name] = grouped[column].agg(lambda values: values.mean(skipna=False))
        error = grouped[column].agg(lambda values: values.sem(skipna=False))
        found[f"{name}_standard_error"] = error
    return pd.concat(found, axis=1).reset_index()


def _beside(
    table: pd.DataFrame,
    printed: pd.DataFrame,
    on: Sequence[str],
    prefix: str,
    names: Sequence[str] = ("mean", "standard_error"),
) -> pd.DataFrame:
    """A table with printed numbers beside its own; NaN where nothing is printed."""
    own = printed[[*on, *names]].rename(columns={name: f"{prefix}_{name}" for name in names})
    return table.merge(own, how="left", on=list(on))


def _combined(error: pd.Series, printed_error: pd.Series) -> pd.Series:
    return np.hypot(error, printed_error.fillna(0.0).clip(lower=LARGEST_ROUNDING))


def _over(table: pd.DataFrame, is_baseline: pd.Series, more: Sequence[str]) -> pd.Series:
    """Differences of exact values from those of baselines on the same split.

    NaN if there is none, or more than one on any split, and for baselines themselves.
    """
    on = ["dataset", "alike", *more]
    rows = table[is_baseline]
    twice = rows.duplicated([*on, "split"], keep=False)
    rows = rows[~twice.groupby([rows[name] for name in on]).transform("any").astype(bool)]
    own = rows[[*on, "split", _EXACT]].rename(columns={_EXACT: "of_baseline"})
    joined = table.merge(own, how="left", on=[*on, "split"]).set_axis(table.index)
    return (table[_EXACT] - joined["of_baseline"]).where(~is_baseline)
