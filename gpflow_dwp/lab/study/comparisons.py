"""Models of a study against each other: paired differences and ranks.

Both compare cells that differ in the model alone: same data set, depth, split and configuration.
The splits' own difficulty, which is most of the spread of a mean, drops out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from gpflow_dwp.lab.study._grouping import (
    LARGER_IS_BETTER,
    groups,
    mean_and_standard_error,
    numbered,
    select,
)
from gpflow_dwp.lab.study.published import PRINTED_NAMES, published_differences
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PAIRS", "model_ranks", "paired_differences"]

# Model and baseline: the three pairs of the improved paper's Table 4, then all against the deep GP.
PAIRS = (
    ("A", "GW"),
    ("AB", "GW"),
    ("A", "AB"),
    ("GW", "DGP"),
    ("A", "DGP"),
    ("AB", "DGP"),
    ("DIWP", "DGP"),
)


def paired_differences(results: pd.DataFrame) -> pd.DataFrame:
    """Mean differences between models over the splits that both were measured on.

    :param results: The flat table of :func:`~gpflow_dwp.lab.study.summary.results_frame`.
    :return: One row for each metric, dataset, depth, pair of :data:`PAIRS` and configuration with a
        common split: ``splits``, ``mean`` of model minus baseline, its ``standard_error`` (NaN from
        one split), ``mean_in_se``, and ``printed_mean`` and ``printed_standard_error`` of the
        improved paper's Table 4 (ELBO only; its standard errors are not paired). Metrics are the
        ELBO per datum, the test log-likelihood, RMSE and CRPS.
    :raises ValueError: If the table is empty or not such a table.
    """
    table, printed = numbered(results), published_differences()
    rows = []
    for metric in LARGER_IS_BETTER:
        for place, block in groups(table, ["dataset", "depth", "configuration"]):
            scores = block.pivot(index="split", columns="model", values=metric)
            for model, baseline in PAIRS:
                if not {model, baseline} <= set(scores.columns):
                    continue
                common = np.intersect1d(*(_splits(block, name) for name in (model, baseline)))
                if not len(common):
                    continue
                both = scores.loc[common]
                mean, error = mean_and_standard_error(both[model] - both[baseline])
                pair = {"model": model, "baseline": baseline}
                row = {"metric": metric, **place, **pair, "splits": len(common)}
                row |= {"mean": mean, "standard_error": error}
                row["mean_in_se"] = mean / error if error > 0.0 else float("nan")
                found = select(printed, dataset=place["dataset"], depth=place["depth"], **pair)
                rows.append(row | _printed(found if metric == "elbo" else found.iloc[:0]))
    columns = None if rows else ["metric", "dataset", "depth", "configuration", "model", "baseline"]
    return import_optional("pandas", "cli").DataFrame(rows, columns=columns)


def model_ranks(results: pd.DataFrame) -> pd.DataFrame:
    """Mean rank of each model, from 1 for the best, over data sets, depths and splits.

    Models are ranked within each dataset, depth, split and configuration; equal scores share the
    mean of their ranks. Ranks among different sets of models are not comparable, so each set that
    was measured together has its own.

    :param results: The flat table of :func:`~gpflow_dwp.lab.study.summary.results_frame`.
    :return: One row for each metric, set of models (``compared``, such as "DGP, GW, A-GW, AB-GW"),
        and model of it: ``mean_rank``, and the number of ``comparisons`` behind it. Comparisons
        with a score that is not finite are left out.
    :raises ValueError: If the table is empty or not such a table.
    """
    table = numbered(results)
    ranks: dict[tuple[str, tuple[str, ...]], list[Any]] = {}
    for metric, larger_is_better in LARGER_IS_BETTER.items():
        for _, block in groups(table, ["dataset", "depth", "configuration", "split"]):
            values = block[metric].to_numpy(float)
            if len(values) > 1 and np.isfinite(values).all():
                rank = rankdata(-values if larger_is_better else values)
                ranks.setdefault((metric, tuple(block["model"])), []).append(rank)
    rows = [
        {
            "metric": metric,
            "compared": ", ".join(PRINTED_NAMES[name] for name in models),
            "model": model,
            "mean_rank": float(np.mean([rank[index] for rank in found])),
            "comparisons": len(found),
        }
        for (metric, models), found in ranks.items()
        for index, model in enumerate(models)
    ]
    columns = None if rows else ["metric", "compared", "model", "mean_rank", "comparisons"]
    return import_optional("pandas", "cli").DataFrame(rows, columns=columns)


def _splits(block: pd.DataFrame, model: str) -> Any:
    return block.loc[block["model"] == model, "split"].to_numpy()


def _printed(found: pd.DataFrame) -> dict[str, float]:
    names = ("mean", "standard_error")
    return {
        f"printed_{name}": float(found[name].iloc[0]) if len(found) else float("nan")
        for name in names
    }
