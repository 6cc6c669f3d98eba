# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The UCI study, beside print
#
# The papers of deep Wishart processes compare them with deep Gaussian processes of the same prior,
# on the UCI regression sets. `ci/study.py` reruns any cell of their tables. This notebook
# shows the results that are under version control in `ci/results`, beside the printed ones. It
# trains nothing.

# %% tags=["hide-input"]
# %matplotlib inline
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown

import gpflow_dwp

ROOT = Path(gpflow_dwp.__file__).resolve().parents[1]  # of a checkout
sys.path.append(str(ROOT / "ci"))
from uci.figures import plot_differences, plot_scores
from uci.tables import (
    KEPT,
    NAMES,
    calibration_table,
    configurations,
    kept_cells,
    markdown_table,
    model_ranks,
    paired_differences,
    published,
    runtime_table,
    score_table,
)

results = kept_cells("uci")
print(f"{len(results)} cells, {results['seconds'].sum() / 3600:.1f} hours")

# %% [markdown]
# ## What was run
#
# One row for each way in which cells were run, by what differs between them. Means are never taken
# over cells of different rows. Figures leave out where one model alone was run, such as in float32;
# tables have it all.

# %%
configurations(results)


# %%
def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of places where several models were run in one way, if there are any."""
    places = table.groupby(["dataset", "depth", "configuration"])
    several = places["model"].transform("nunique") > 1
    return table[several] if several.any() else table


# %%
results.groupby(["machine", "threads"], dropna=False).agg(
    cells=("split", "size"),
    commits=("commit", "nunique"),
    first=("date", "min"),
    last=("date", "max"),
)

# %% [markdown]
# ## ELBO per training datum
#
# In nats, higher is better. Each cell of the table is the mean over the splits that were run, plus
# or minus one standard error, and in brackets what the improved paper prints for 20 splits
# (protein: 5). One split has no standard error. Printed numbers have two decimals, so a printed
# 0.00 may be up to 0.005.

# %%
Markdown(markdown_table(results, "elbo"))

# %%
scores = score_table(results)
plot_scores(compared(scores), "elbo")

# %% [markdown]
# How far each mean is from print, in combined standard errors, the root of the sum of both
# squares. From few splits that is rough: the measured standard error is itself uncertain by a
# third for 5 splits, and by a half for 3.

# %%
columns = ["metric", "dataset", "depth", "model", "configuration", "splits"]
columns += ["improved_mean", "improved_difference_in_se", "improved_verdict"]
scores[columns].round(3)

# %%
counts = pd.crosstab(scores["metric"], scores["improved_verdict"])
counts

# %% [markdown]
# ## Test log-likelihood and root mean squared error
#
# Both in the target's raw units.

# %%
Markdown(markdown_table(results, "test_log_likelihood"))

# %%
plot_scores(compared(scores), "test_log_likelihood")

# %%
Markdown(markdown_table(results, "rmse"))

# %%
plot_scores(compared(scores), "rmse")

# %% [markdown]
# ## Model against model
#
# Differences over the same splits: what makes one split harder than another drops out, so their
# standard errors are far smaller than those of the means. The improved paper's Table 4 prints such
# differences of the ELBO, with the standard errors of both means combined as if they had been
# measured on unrelated splits.

# %%
differences = paired_differences(results)
plot_differences(differences)

# %%
differences[differences["metric"] == "elbo"].round(3)

# %% [markdown]
# Mean ranks, 1 for the best, over all data sets, depths and splits on which the same models were
# run.

# %%
ranks = model_ranks(results)
ranks.pivot(index=["compared", "comparisons", "model"], columns="metric", values="mean_rank").round(
    2
)

# %% [markdown]
# ## Depth
#
# Models grow layer by layer: each starts where the one before has ended. Left the bound, with the
# improved paper's means as crosses, right the divergence of the
# layer that was added, split 0. [What it means](results.md#depth).

# %%
depth = pd.read_csv(KEPT / "depth.csv")
in_print = published("elbo", "improved")
names = depth["dataset"].unique()
figure, axes = plt.subplots(
    len(names), 2, figsize=(9, 2.8 * len(names)), sharex=True, squeeze=False
)
for (bound, nats), name in zip(axes, names, strict=True):
    for color, (model, grown) in enumerate(depth[depth["dataset"] == name].groupby("model")):
        bound.plot(grown["depth"], grown["elbo"], "o-", color=f"C{color}", label=NAMES[model])
        cells = in_print[(in_print["dataset"] == name) & (in_print["model"] == model)]
        bound.plot(cells["depth"], cells["mean"], "x", color=f"C{color}")
        deep = grown[grown["depth"] > 1]
        nats.plot(deep["depth"], deep["divergence_of_added"], "o-", color=f"C{color}")
    bound.set_title(f"{name}: ELBO per row (nats)")
    nats.set_title(f"{name}: divergence of the added layer (nats)")
    nats.set_ylim(bottom=0.0)
axes[0, 0].legend()
for axis in axes[-1]:
    axis.set_xlabel("depth")
figure.tight_layout()

# %% [markdown]
# ## Time
#
# The papers' machines were others: boston ran on a CPU there, protein on a GPU. What carries over
# is the time of a step over that of the deep Gaussian process, `step_over_dgp`.

# %%
runtimes = runtime_table(results)
columns = ["dataset", "depth", "model", "configuration", "splits"]
runtimes[[*columns, "seconds_per_step", "training_seconds", "step_over_dgp"]].round(3)

# %% [markdown]
# ## Calibration
#
# Continuous ranked probability score (raw units, lower is better), and the share of test points
# that lie within central intervals of the prediction.

# %%
calibration = calibration_table(results)
calibration[[*columns, "crps", "coverage_50", "coverage_90", "coverage_95"]].round(3)
