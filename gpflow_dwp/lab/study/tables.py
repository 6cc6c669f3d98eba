"""The numbers of a study: means over splits, what was printed, and models against each other.

All functions take the flat table of :func:`~gpflow_dwp.lab.study.frame.results_frame`, and raise a
ValueError if it is empty or not such a table. Means are taken over the splits of cells of one
configuration only; :func:`~gpflow_dwp.lab.study.frame.configurations` says which is which.

A standard error is the standard deviation over splits (divisor: splits less one) over the root of
their number. From few splits it is rough: from 5 its own relative error is about 35%, from 3, 50%.
Where models are compared, cells differ in the model alone: same data set, depth, split and
configuration. The splits' own difficulty, which is most of the spread of a mean, drops out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpflow_dwp.lab.study.frame import alike, configuration_columns, numbered, sort_key
from gpflow_dwp.lab.study.published import (
    LARGEST_ROUNDING,
    PAPERS,
    PAPERS_WITH_RUNTIMES,
    PRINTED_NAMES,
    published_densities,
    published_differences,
    published_runtimes,
    published_scores,
)

__all__ = [
    "AGREEMENT",
    "LARGER_IS_BETTER",
    "PAIRS",
    "calibration_table",
    "density_table",
    "model_ranks",
    "paired_differences",
    "runtime_table",
    "score_table",
]

# Combined standard errors within which a measured and a printed mean are said to agree.
AGREEMENT = 3.0

LARGER_IS_BETTER = {"elbo": True, "test_log_likelihood": True, "rmse": False, "crps": False}

# Model and baseline: the three pairs of the improved paper's Table 4, then all against the deep GP.
PAIRS = (
    *(("A", "GW"), ("AB", "GW"), ("A", "AB")),
    *(("GW", "DGP"), ("A", "DGP"), ("AB", "DGP"), ("DIWP", "DGP")),
)

_PLACE = ["dataset", "depth", "model", "configuration"]
_TIMES = ["seconds_per_step", "seconds_per_epoch", "training_seconds"]
# A model without latent variables has no importance samples, and a deep Wishart process more draws.
_OF_THE_MODEL = {"inference", "num_importance_samples", "num_samples", "options"}
_KERNEL, _EXACT = "log_likelihood_kernel", "log_likelihood_standardised"


def score_table(results: pd.DataFrame) -> pd.DataFrame:
    """The papers' scores, each mean over splits beside the printed ones.

    A difference is measured minus printed. It is also given in combined standard errors,
    sqrt(measured² + printed²), where a printed standard error below half a unit of its last
    decimal, which prints as 0.00, counts as that half unit, 0.005. What rounding does to the
    printed mean, at most 0.005 as well, is in neither.

    :return: One row for each metric, dataset, depth, model and configuration: ``splits``,
        ``commits`` (how many versions of the code the cells are known to be of), ``mean``,
        ``standard_error`` (NaN from one split), and for ``P`` each of the papers ``P_mean``,
        ``P_standard_error``, ``P_difference``, ``P_difference_in_se`` and ``P_verdict``: "within"
        three combined standard errors, "better", "worse", "one split" or "not finite" where there
        is no standard error, or nothing where nothing is printed. The ELBO is per training datum,
        in nats; the others are in raw units.
    """
    table, printed = numbered(results), published_scores()
    by = ["metric", *_PLACE]
    long = table.melt([*_PLACE, "commit"], printed["metric"].unique(), "metric")
    means = _means(long, by, mean="value").rename(columns={"mean_standard_error": "standard_error"})
    scores = long.groupby(by, sort=False).agg(
        splits=("value", "size"), commits=("commit", "nunique")
    )
    scores = scores.reset_index().merge(means, on=[*by, "splits"])
    mean, error = scores["mean"], scores["standard_error"]
    for paper in PAPERS:
        scores = _beside(scores, printed[printed["paper"] == paper], by[:-1], paper)
        difference = mean - scores[f"{paper}_mean"]
        in_errors = _in_errors(difference, error, scores[f"{paper}_standard_error"])
        verdicts = {
            "": scores[f"{paper}_mean"].isna(),
            "not finite": error.isna() & ~np.isfinite(mean),
            "one split": error.isna(),
            "within": in_errors.abs() <= AGREEMENT,
            "better": (in_errors > 0.0) == scores["metric"].map(LARGER_IS_BETTER),
        }
        scores[f"{paper}_difference"] = difference
        scores[f"{paper}_difference_in_se"] = in_errors
        scores[f"{paper}_verdict"] = np.select([*verdicts.values()], [*verdicts], "worse")
    return scores


def calibration_table(results: pd.DataFrame) -> pd.DataFrame:
    """Continuous ranked probability score and coverage of central intervals, means over splits.

    :return: One row for each dataset, depth, model and configuration: ``splits``, and for each of
        ``crps`` (raw units, lower is better), ``coverage_50``, ``coverage_90`` and ``coverage_95``
        (shares of test points) its mean and, with ``_standard_error``, that one's error.
    """
    scores = ("crps", "coverage_50", "coverage_90", "coverage_95")
    return _means(numbered(results), _PLACE, **{name: name for name in scores})


def runtime_table(results: pd.DataFrame) -> pd.DataFrame:
    """Times, averaged over the splits that ran on one kind of machine, beside the printed ones.

    :return: One row for each dataset, depth, model, configuration, machine and number of threads:
        ``splits``, mean ``seconds_per_step``, ``seconds_per_epoch`` and ``training_seconds``;
        ``step_over_dgp``, the time of a step over that of the DGP on the same split, and the median
        of that over the ``splits_with_dgp``; and for ``P`` each of the papers that print times
        ``P_seconds_per_epoch`` and ``P_over_dgp``, for its own machines. What else the machine did
        at the time is in all of them.
    """
    table, printed = numbered(results), published_runtimes()
    where = ["machine", "threads"]
    table = _over_dgp(table, ["dataset", "depth", "configuration", *where, "split"], _TIMES[0])
    grouped = table.groupby([*_PLACE, *where], sort=False, dropna=False)
    times = grouped.agg(
        splits=("split", "size"),
        **{name: (name, "mean") for name in _TIMES},
        step_over_dgp=("over_dgp", "median"),
        splits_with_dgp=("over_dgp", "count"),
    ).reset_index()
    printed = _over_dgp(printed, ["paper", "dataset", "depth"], "seconds_per_epoch")
    for paper in PAPERS_WITH_RUNTIMES:
        there = printed[printed["paper"] == paper]
        times = _beside(times, there, _PLACE[:-1], paper, ["seconds_per_epoch", "over_dgp"])
    return times


def paired_differences(results: pd.DataFrame) -> pd.DataFrame:
    """Mean differences between models over the splits that both were measured on.

    :return: One row for each metric, dataset, depth, pair of :data:`PAIRS` and configuration with a
        common split: ``splits``, ``mean`` of model minus baseline, its ``standard_error`` (NaN from
        one split), ``mean_in_se``, and ``printed_mean`` and ``printed_standard_error`` of the
        improved paper's Table 4 (ELBO only; its standard errors are not paired). Metrics are the
        ELBO per datum, the test log-likelihood, RMSE and CRPS.
    """
    place = ["metric", "dataset", "depth", "configuration"]
    long = numbered(results).melt([*_PLACE, "split"], list(LARGER_IS_BETTER), "metric")
    of_baseline = long.rename(columns={"model": "baseline", "value": "of_baseline"})
    both = pd.DataFrame(PAIRS, columns=["model", "baseline"]).merge(long, on="model")
    both = both.merge(of_baseline, on=[*place, "split", "baseline"])
    both["difference"] = both["value"] - both["of_baseline"]
    found = _means(both, [*place, "model", "baseline"], mean="difference")
    found = found.rename(columns={"mean_standard_error": "standard_error"})
    found["mean_in_se"] = found["mean"] / found["standard_error"].where(lambda error: error > 0.0)
    printed = published_differences().assign(metric="elbo")
    on = ["metric", "dataset", "depth", "model", "baseline"]
    order = sort_key(metric=LARGER_IS_BETTER)
    return _beside(found.sort_values(place, key=order, kind="stable"), printed, on, "printed")


def model_ranks(results: pd.DataFrame) -> pd.DataFrame:
    """Mean rank of each model, from 1 for the best, over data sets, depths and splits.

    Models are ranked within each dataset, depth, split and configuration; equal scores share the
    mean of their ranks. Ranks among different sets of models are not comparable, so each set that
    was measured together has its own.

    :return: One row for each metric, set of models (``compared``, such as "DGP, GW, A-GW, AB-GW"),
        and model of it: ``mean_rank``, and the number of ``comparisons`` behind it. Comparisons
        with a score that is not finite are left out.
    """
    block = ["dataset", "depth", "configuration", "split"]
    table = numbered(results).sort_values(block, kind="stable")
    long = table.melt([*block, "model"], list(LARGER_IS_BETTER), "metric")
    block = ["metric", *block]
    finite = long.assign(finite=np.isfinite(long["value"])).groupby(block)["finite"]
    long = long[finite.transform("all") & (finite.transform("size") > 1)]
    rising = long["metric"].isin([name for name, is_up in LARGER_IS_BETTER.items() if is_up])
    falling = long["value"].where(~rising, -long["value"])
    long = long.assign(value=falling, compared=long["model"].map(PRINTED_NAMES))
    blocks = long.groupby(block)
    long = long.assign(
        rank=blocks["value"].rank(), compared=blocks["compared"].transform(", ".join)
    )
    ranks = long.groupby(["metric", "compared", "model"], sort=False)["rank"]
    return ranks.agg(mean_rank="mean", comparisons="size").reset_index()


def density_table(results: pd.DataFrame) -> pd.DataFrame:
    """Log-likelihoods of standardised test targets, means over splits.

    Printed are those of Salimbeni, Dutordoir, Hensman and Deisenroth (2019): kernel density
    estimates, which smooth; so are the measured ones that stand beside them. Differences between
    measured models are of the exact values, and paired.

    :param results: The flat table.
    :return: One row for each dataset, depth, model and configuration that has such scores:
        ``inference`` ("VI", or "IWVI" with more than one importance sample), ``splits``; for
        ``kernel`` and ``exact`` the mean (nats per row) and with ``_standard_error`` its error;
        ``shapiro_wilk`` (mean over splits); ``printed_mean``, ``printed_standard_error``,
        ``difference`` (kernel minus printed) and ``difference_in_se``, that in combined standard
        errors; ``over_gp`` and ``over_vi``, the mean difference from the single-layer GP and from
        the same model by VI, over common splits of cells that are otherwise alike, and their
        standard errors. NaN where something is not there.
    """
    table = numbered(results)
    if _EXACT not in table:
        table = table.iloc[:0].assign(**dict.fromkeys((_EXACT, _KERNEL, "shapiro_wilk"), np.nan))
    others = [name for name in configuration_columns(table) if name not in _OF_THE_MODEL]
    table = table.assign(alike=alike(table, others))[table[_EXACT].notna()]
    is_vi = ~(table.get("num_importance_samples", pd.Series(1, table.index)).fillna(1) > 1)
    table["inference"] = np.where(is_vi, "VI", "IWVI")
    table["over_gp"] = _over(table, is_vi & (table["model"] == "GP"), [])
    table["over_vi"] = _over(table, is_vi, ["model", "depth"])
    by = ["dataset", "depth", "model", "inference", "configuration"]
    found = _means(table, by, kernel=_KERNEL, exact=_EXACT)
    shapiro = table.groupby(by, sort=False)["shapiro_wilk"].mean().reset_index()
    on = ["dataset", "model", "inference"]
    found = _beside(found.merge(shapiro, on=by), published_densities(), on, "printed")
    found["difference"] = found["kernel"] - found["printed_mean"]
    found["difference_in_se"] = _in_errors(
        found["difference"], found["kernel_standard_error"], found["printed_standard_error"]
    )
    for name in ("over_gp", "over_vi"):
        over = _means(table.dropna(subset=[name]), by, **{name: name}).drop(columns="splits")
        found = found.merge(over, how="left", on=by)
    return found


def _means(table: pd.DataFrame, by: Sequence[str], **columns: str) -> pd.DataFrame:
    """Means of columns over the rows that agree in some others, and their standard errors.

    A value that is not finite makes both so: a cell that went wrong is not left out in silence.
    """
    grouped = table.groupby(list(by), sort=False, dropna=False)
    found = {"splits": grouped.size()}
    with np.errstate(invalid="ignore"):  # infinity less infinity
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


def _in_errors(difference: pd.Series, error: pd.Series, printed_error: pd.Series) -> pd.Series:
    return difference / np.hypot(error, printed_error.clip(lower=LARGEST_ROUNDING))


def _over_dgp(table: pd.DataFrame, on: Sequence[str], time: str) -> pd.DataFrame:
    """A table with ``over_dgp``, a time over that of the DGP that is alike; NaN without one."""
    dgp = table.loc[table["model"] == "DGP", [*on, time]]
    joined = table.merge(dgp, how="left", on=list(on), suffixes=("", "_of_dgp"))
    return joined.assign(over_dgp=joined[time] / joined[f"{time}_of_dgp"])


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
