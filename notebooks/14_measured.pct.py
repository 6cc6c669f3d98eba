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
# # What has been measured, beside print
#
# This page puts what this package measures beside what the papers print. It trains nothing:
# `ci/results` has every number with machine, commit and date. For tables beside other models, see
# [when to use it](how-to/when_to_use_it.md); to run any of it, [reproduce the
# papers](how-to/reproduce_the_papers.md).
#
# - A **cell** is one model, trained and tested on one split of one data set. Cells ran on 2 cores
#   of an AMD EPYC, mostly shared with other work, no accelerator, one thread a cell, float64, seed
#   0, if nothing else is said.
# - The **ELBO** is per training row and of standardised targets. Test log-likelihoods and RMSEs are
#   in raw units where nothing else is said.

# %% tags=["hide-input"]
# %matplotlib inline
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Markdown, display

import gpflow_dwp

sys.path.append(str(Path(gpflow_dwp.__file__).resolve().parents[1] / "ci"))  # of a checkout
from uci import figures, tables
from uci.tables import NAMES, kept_cells, published

SCORES = {"elbo": "ELBO", "test_log_likelihood": "test log-likelihood", "rmse": "RMSE"}
printed = published("elbo", "improved").set_index(["dataset", "depth", "model"])
printed = printed[["mean", "standard_error"]]


def of_last_recipe(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that have several splits, by the last recipe that has any."""
    cells = cells[cells["dtype"] == "float64"]
    last = cells.groupby(["dataset", "depth"])["recipe"].transform("max")
    cells = cells[cells["recipe"] == last]
    return cells[cells.groupby(["dataset", "depth", "model"])["split"].transform("size") > 1]


def show_scores(cells: pd.DataFrame, *metrics: str, paper: str = "improved") -> None:
    for metric in metrics:
        text = tables.markdown_table(cells, metric, paper)
        display(Markdown(f"{SCORES[metric]}:\n\n{text}"))


def with_ard(cells: pd.DataFrame) -> pd.DataFrame:
    """The deep GP with lengthscales for all features is a model of its own."""
    has_ard = cells["options"].str.contains("hidden_ard", na=False)
    return cells.assign(model=cells["model"].mask(has_ard, "DGP, ARD"), has_ard=has_ard)


# %% [markdown]
# ## The regression output
#
# The package's default for up to 2,000 rows: the output layer's posterior is a regression on the
# data instead of something to learn. The model is the papers' own. It takes 3,000 steps of two
# draws (6,000 at depth 5), about a minute a cell (four at depth 5); the papers take 20,000 steps of
# ten draws. Mean ± standard error over the splits; in brackets, the improved paper's over 20
# splits.
#
# ```bash
# python ci/study.py run --datasets yacht boston energy concrete --models DGP GW A AB \
#   --splits 0-19 --protocol fast --num-steps 3000 --set output=regression --out studies/regression
# python ci/study.py run --datasets yacht --depths 5 --models DGP GW A AB --splits 0-19 \
#   --protocol fast --num-steps 6000 --set output=regression --out studies/depth-5
# ```


# %% tags=["hide-input"]
def with_regression(cells: pd.DataFrame) -> pd.DataFrame:
    return of_last_recipe(cells[cells["options"] == '{"output": "regression"}'])


regression = kept_cells("uci", with_regression)
show_scores(regression, *SCORES)

# %%
figures.plot_scores(tables.score_table(regression), "elbo")

# %% [markdown]
# The same cells as distances from print: what is measured less what is printed, in standard errors
# of the difference.

# %% tags=["hide-input"]
scores = tables.score_table(regression)
print(scores["improved_verdict"].value_counts().to_string())
place = ["metric", "dataset", "depth"]
distances = scores.pivot(index=place, columns="model", values="improved_difference_in_se")
distances[["DGP", "GW", "A", "AB"]].rename(columns=NAMES).round(1)

# %% [markdown]
# Models against each other, split by split: differences of the ELBO with their paired standard
# errors. In brackets, those of the improved paper's Table 4, which are not paired.

# %% tags=["hide-input"]
differences = tables.paired_differences(regression)
bounds = differences[differences["metric"] == "elbo"].copy()
bounds["pair"] = bounds["model"].map(NAMES) + " − " + bounds["baseline"].map(NAMES)
columns = ["mean", "standard_error", "printed_mean", "printed_standard_error"]
bounds["text"] = [
    tables.estimate(*row[:2]) + (f" ({tables.in_print(*row[2:])})" if row[2] == row[2] else "")
    for row in bounds[columns].itertuples(index=False)
]
display(bounds.pivot(index=["dataset", "depth"], columns="pair", values="text"))

# %% [markdown]
# All cells are of one recipe and of all 20 splits.
#
# The deep inverse Wishart process has two cells, by `--depths 3 --models DIWP` in the first
# command, and by the papers' protocol (`python ci/study.py run --datasets yacht --depths 3 --models
# DIWP --splits 0`). In brackets, what the original paper quotes for it in its Table 3, over 20
# splits and of another implementation; its text says three layers, its rows are those of depth 4.

# %% tags=["hide-input"]
inverse = kept_cells("uci", lambda cells: cells[cells["model"] == "DIWP"])
show_scores(inverse, "elbo", "test_log_likelihood", paper="original")

# %% [markdown]
# ## The papers' protocol
#
# ELBO by 20,000 steps of ten draws, in brackets the improved paper's mean over 20 splits; `python
# ci/study.py run --datasets yacht boston --depths 2 --models DGP GW A AB --splits 0-2`, and the
# like with `--depths 5 --models A` and `--kl-annealing-steps 5000`. A cell of depth 2 takes 9 to 12
# minutes beside another one, one of depth 5 about 25: three splits and depth 2 are what a machine
# of two cores allows. "Before" are cells without sampled log ratios, the published start of q and
# lengthscales from √ν₀ ([where we differ](how-to/reproduce_the_papers.md#where-we-differ)), which
# the protocol has since.

# %% tags=["hide-input"]
cells = with_ard(kept_cells("uci", lambda cells: cells[cells["model"] != "DIWP"]))
is_theirs = (cells["num_samples"] == 10) & (cells["num_steps"] == 20_000)
is_whole = cells["batch_size"].isna() & (cells["dtype"] == "float64")
cells = cells[is_theirs & is_whole & (cells["has_ard"] | cells["options"].isna())]
cells = cells.assign(
    annealing=cells["kl_annealing_steps"].fillna(1_000),
    protocol=np.where(cells["recipe"] < 7, "before", "as it is"),
)
place = ["dataset", "depth", "protocol", "annealing", "model"]
last = cells.sort_values("recipe", kind="stable").drop_duplicates([*place, "split"], keep="last")
rows = {}
for (dataset, depth, protocol, annealing, model), block in last.groupby(place):
    splits, bounds = sorted(block["split"]), block["elbo"]
    several = f"{splits[0]} to {splits[-1]}" if len(splits) > 1 else f"{splits[0]}"
    error = bounds.sem() if len(splits) > 1 else np.nan
    beside = tables.in_print(*printed.loc[(dataset, depth, model.split(",")[0])])
    row = rows.setdefault((dataset, depth, protocol, f"{annealing:,}", several), {})
    row[NAMES.get(model, model)] = f"{tables.estimate(bounds.mean(), error)} ({beside})"
theirs = pd.DataFrame.from_dict(rows, orient="index").fillna("")
theirs.rename_axis(["data set", "depth", "protocol", "annealing", "splits"])[
    ["DGP, ARD", "DGP", "GW", "A-GW", "AB-GW"]
]

# %% [markdown]
# The bound in the course of training, as in the original paper's Figure 1, of the three cells by
# the protocol as it is (`python ci/study.py run --datasets yacht --models DGP GW --splits 0`, the
# one of DIWP above, and its `report`). Seconds are of a busy core.

# %% tags=["hide-input"]
figures.plot_traces(kept_cells("uci"))

# %% [markdown]
# Two cells fall far short of print by the papers' own annealing: the deep GP at depth 2 and A-GW at
# depth 5. While the weight of the log ratios grows from 0 to 1 over 1,000 steps, their hidden
# layers fall back to almost the prior, and stay there. A longer annealing helps: the deep GP then
# ends at print; A-GW at depth 5 has a test log-likelihood of -0.01 instead of -0.54 and an RMSE of
# 0.25 instead of 0.51, but still ends below print. A-GW and AB-GW at depth 2, which need no help,
# lose 0.03 to it.
#
# - **The deep GP is another one in print**, it seems. The papers give only the first layer a
#   lengthscale for each input; bayesfunc, their authors' library, gives every layer of a deep GP
#   one for each feature. With that (`--set hidden_ard=true`, "DGP, ARD") it ends at print by the
#   papers' own annealing. It depends on small things all the same: on split 0, other starting
#   values ended at 1.62, 1.84, 1.98 and 2.02, and without the lengthscales at 1.56 and 1.58 (single
#   runs of changed code, which are not kept, but for the last).
# - **A-GW at depth 5** is not explained. With bayesfunc's starts of V and of the pseudo-targets'
#   precision, and its scales of A and μ, under which Adam moves them less, it stood at 1.55 after
#   11,000 steps, with the learning rate at 0.001 (one run, which is not kept). Other lengthscales,
#   noise and a larger learning rate ended no better.
#
# Splits differ by up to 0.07, of which three tell little: by the protocol as it is A-GW and AB-GW
# are 0.045 below print on yacht (2.5 combined standard errors) and GW 0.08 (2); on its split 0
# A-GW and AB-GW had 0.04 more before. On boston all four models are at print.
#
# These cells are of several versions of the package. What changed between them, gradients through
# [the jitter](#gradients-of-the-jitter) and a pseudo-targets' posterior that rounds less, moved the
# two low cells by less than 0.03.
#
# ## Larger sets
#
# With more than 2,000 rows, training takes minibatches of 1,000 and learned pseudo-targets: 20,000
# steps of two draws, 5 to 10 minutes a cell on busy cores. Mean ± standard error over splits 0 to
# 4; in brackets, the improved paper's.
#
# ```bash
# python ci/study.py run --datasets kin8nm power protein --models DGP AB --splits 0-4 \
#   --protocol fast --out studies/large
# ```


# %% tags=["hide-input"]
def by_minibatches(cells: pd.DataFrame) -> pd.DataFrame:
    is_fast = (cells["protocol"] == "fast") & cells["options"].isna()
    is_whole = cells["num_steps"] == 20_000
    return of_last_recipe(cells[is_fast & is_whole & cells["batch_size"].notna()])


show_scores(kept_cells("uci", by_minibatches), *SCORES)

# %% [markdown]
# Power is within three standard errors of print. On kin8nm AB-GW is 0.01 below it and the deep GP
# 0.04, and on protein both are 0.02 below. On kin8nm part of that is the minibatch, of which the
# papers do not say the size. By their own times of an epoch for GW, 0.84 s on protein and 0.20 s on
# boston, an epoch of protein is four or five steps, of some 10,000 rows. Split 0 of kin8nm, ELBO at
# the end, by the command above and:

# %% tags=["hide-input"]
cells = with_ard(kept_cells("uci").query("dataset == 'kin8nm' and split == 0 and depth == 2"))
cells = cells[(cells["dtype"] == "float64") & cells["kl_annealing_steps"].isna()]
is_regression = cells["options"].str.contains("regression", na=False)
is_learned = ~cells["options"].str.contains(":", na=False) & (cells["num_steps"] == 20_000)
whole = "--batch-size 10000 --set output=regression"
asked = {
    "nothing else": is_learned & (cells["num_samples"] == 2),
    "--protocol papers instead, ten draws": is_learned & (cells["num_samples"] == 10),
    f"--num-steps 3000 {whole}": is_regression & (cells["num_steps"] == 3_000),
    f"--num-steps 10000 {whole}": is_regression & (cells["num_steps"] == 10_000),
}
in_print = {model: printed["mean"]["kin8nm", 2, model] for model in ("AB", "DGP")}
found = {"print": pd.Series(in_print)}
for title, chosen in asked.items():
    last = cells[chosen].sort_values("recipe", kind="stable").groupby("model")["elbo"].last()
    found[title] = last
pd.DataFrame(found).T[["AB", "DGP", "DGP, ARD"]].rename(columns=NAMES).round(3)

# %% [markdown]
# Rows of ten draws and of 3,000 steps are of earlier versions, but for the deep GP with a
# lengthscale for each feature ("DGP, ARD": `--set hidden_ard=true`). With all rows in every step
# AB-GW is at print. The deep GP ends 0.024 below, and 0.017 with lengthscales for [all features, as
# in the authors' library](#the-papers-protocol): three times the steps gain nothing, nor does
# another start. Grown from a single layer it ends at -0.175, and A-GW at -0.139. On split 0 of
# protein steps of 10,000 rows (`--num-steps 3000 --batch-size 10000`) end where those of 1,000 do:
# AB-GW at -1.072 both, the deep GP at -1.077 both; and 60,000 steps of 1,000 rows take AB-GW to
# -1.075.
#
# What is left is inducing points. The papers do not say how many they take, and here it is 100
# where nothing else is said. Split 0 by `--num-inducing 200` and 400; kin8nm with `--num-steps 3000
# --batch-size 10000 --set output=regression`, on a GPU (NVIDIA H100, four cells at a time):

# %% tags=["hide-input"]
more, fewer = (
    kept_cells(study).astype({"options": "string"}) for study in ("inducing_points", "uci")
)
same = ["dataset", "depth", "split", "model", "num_steps", "batch_size", "options"]
fewer = fewer.query("num_samples == 2 and protocol == 'fast' and dtype == 'float64'")
fewer = fewer.sort_values("recipe", kind="stable").drop_duplicates(same, keep="last")
cells = with_ard(pd.concat([fewer.merge(more[same].drop_duplicates()), more]))
by_size = cells.melt(["dataset", "model", "num_inducing"], ["elbo", "test_log_likelihood"], "score")
by_size = by_size.pivot(index=["dataset", "model", "score"], columns="num_inducing", values="value")
by_size["print"] = [
    published(score, "improved").set_index(["dataset", "depth", "model"])["mean"][
        dataset, 2, model.split(",")[0]
    ]
    for dataset, model, score in by_size.index
]
by_size.rename(index=NAMES).round(3)

# %% [markdown]
# With 200 of them all models pass print on both sets, most of all the deep GP, which 100 cost more.
#
# ## Gradients of the jitter
#
# The jitter is a fraction of each covariance's mean diagonal, and gradients go through it. With a
# jitter that is constant for gradients, the deep GP on kin8nm lost its hidden layer and ended at
# -0.665: the first kernel's variance and lengthscales grew until the jitter, which is white noise
# of the features, drowned them.
#
# ## Conditional densities
#
# Deep GPs with latent variables (LV), trained by variational inference (VI) and by the
# importance-weighted bound with K = 5 (IWVI). Means over splits 0 and 1 of the test log-likelihood
# of standardised targets: by the exact density, by the paper's kernel density estimate, and as
# printed. 3,000 steps, where the paper takes 100,000, by `python ci/study.py run --protocol
# cde-fast --num-samples 1`, half a minute to 38 minutes a cell. The second table has what the paper
# has below its own: mean ranks by the exact density, 1 for the best, of models that were measured
# together, whatever their depth, and median differences from the GP over data sets.

# %% tags=["hide-input"]
densities = kept_cells("densities")
steps = densities.drop_duplicates("configuration").set_index("configuration")["num_steps"]
table = tables.density_table(densities)
table = table.assign(steps=table["configuration"].map(steps), print=table["printed_mean"])
columns = ["dataset", "model", "inference", "steps", "exact", "kernel", "print"]
columns += ["over_gp", "over_gp_standard_error", "over_vi", "over_vi_standard_error"]
display(table[columns].round(3).style.hide().format(precision=3, na_rep=""))
display(tables.density_ranks(densities).round(2).style.hide().format(precision=2, na_rep=""))

# %% [markdown]
# - The kernel estimate is no safe yardstick: for the GP on power it is 0.38 nats a row below the
#   model's own density on split 0, and 0.01 on split 1.
# - By the density, latent variables gain most on protein and power, and more by the
#   importance-weighted bound than by the evidence lower bound.
# - On energy all four are within 0.1 of each other; in print LV-GP-GP gains 0.3 there. On concrete
#   the importance-weighted bound is better on one split and worse on the other.
# - On kin8nm a second layer gains much and latent variables nothing, as in print.
#
# All seven models of the paper's Table 1 by variational inference, three sets, splits 0 to 4, one
# recipe (`--datasets energy power kin8nm --models GP GP-GP GP-GP-GP LV-GP LV-GP-GP LV-GP-GP-GP
# GP-LV-GP --splits 0-4`): the exact density, in brackets print, and ranks as above.

# %% tags=["hide-input"]
seven = kept_cells("seven_models")
table = tables.density_table(seven)
print_beside = table["printed_mean"].map(lambda mean: f" ({mean:.2f})" if mean == mean else "")
table = table.assign(text=table["exact"].map("{:.3f}".format) + print_beside)
display(table.pivot(index="model", columns="dataset", values="text"))
ranks = tables.density_ranks(seven).set_index("model")[["mean_rank", "median_over_gp"]]
display(ranks.sort_values("mean_rank").round(2))

# %% [markdown]
# After 3,000 steps depth gains on energy and kin8nm, as in print, and latent variables 0.01 to 0.02
# nats on power. What print gains by them there is by its kernel estimate, and on a split of its own
# (below).
#
# ### The split that was printed
#
# The paper writes of five splits, and prints standard errors of 0.00 where splits differ by far
# more. One split explains its numbers: rows in the order that `numpy.random.seed(0)` and `shuffle`
# give, the first 90% for training, inputs and targets standardised by all rows. The authors' script
# does take split 0 whichever is asked for. Two models with nothing to choose show it, linear least
# squares, and GPflow's SGPR with 128 rows as inducing points and L-BFGS; test log-likelihoods on
# five splits that are drawn so, from seed 0 to 4:
#
# | data set | model | print | seed 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|---|---|
# | energy | linear | -0.06 ± 0.00 | **-0.06** | -0.17 | -0.15 | -0.37 | -0.06 |
# | concrete | linear | -0.97 ± 0.00 | **-0.97** | -1.01 | -0.88 | -0.96 | -0.90 |
# | kin8nm | linear | -1.12 ± 0.00 | **-1.12** | -1.13 | -1.16 | -1.18 | -1.16 |
# | protein | linear | -1.25 ± 0.00 | **-1.25** | -1.26 | -1.26 | -1.26 | -1.26 |
# | energy | SGPR | 1.71 ± 0.00 | **1.71** | | | | |
# | concrete | SGPR | -0.43 ± 0.00 | **-0.45** | | | | |
# | kin8nm | SGPR | -0.29 ± 0.00 | **-0.28** | | | | |
#
# An exact GP has 1.73, 1.72, 1.30, 1.77 and 1.74 on these splits of energy, and 1.71, 1.54, 1.64,
# 1.69 and 1.51 on splits 0 to 4 of the folder that is used here. So on energy print is higher by
# its split: our two average 0.1 less. The study's own GP has 1.73 on the printed split by its
# density, and 1.72 by the kernel estimate (3,000 steps, by the guide's command below). Power is the
# exception: none of the five splits has the printed linear model's -0.43 (they have -0.14 to
# -0.05), so its rows, or their order, are others. There the kernel estimate decides: on the split
# of seed 1 a single row, 50 nats below, takes SGPR from -0.01 by its density to -0.8, and another
# draw to -0.85. [A few lines](how-to/reproduce_the_papers.md#densities-with-latent-variables) write
# such a split and fit both models.
#
# ### More steps
#
# On the printed split, by `--protocol cde-fast` and for the GP by the paper's `cde`: bound per
# datum, and test log-likelihoods. The rows of power are not those of the paper.

# %% tags=["hide-input"]
cells = kept_cells("printed_split")
means = published("log_likelihood_kernel", "iwvi")
means = means.set_index(["dataset", "model", "inference"])["mean"]
names = {
    "num_steps": "steps",
    "elbo": "bound",
    "log_likelihood_standardised": "exact",
    "log_likelihood_kernel": "kernel",
}
cells["inference"] = np.where(cells["num_importance_samples"] > 1, "IWVI", "VI")
place = ["dataset", "model", "inference"]
cells["print, 100,000 steps"] = [means[tuple(row)] for row in cells[place].to_numpy()]
cells = cells.sort_values([*place[:2], "num_importance_samples", "protocol", "num_steps"])
shown = [*place, "protocol", *names.values(), "print, 100,000 steps"]
cells = cells.rename(columns=names)[shown]
cells.style.hide().format(precision=2, subset=["exact", "kernel", "print, 100,000 steps"])

# %% [markdown]
# - **Energy** has ended by 30,000 steps, with latent variables in use: they raise the bound by
#   0.14. The 77 rows held out do not gain by it: a GP has 1.73 there. The 2.00 in print does not
#   come out by 100,000 steps either. By the importance-weighted bound they do gain: 0.10 by 8,000
#   steps, where print, by 100,000, has 0.13 more; it was not run longer.
# - By the paper's own training, natural gradients and Adam (`--protocol cde`), the GP on energy
#   ends at print: 1.72 after 30,000 and after all 100,000 steps, print 1.71. LV-GP-GP has a bound
#   of 0.84 and a test log-likelihood of 1.45 after 3,000 with K = 1, where `cde-fast` has 1.27
#   and 1.67; it was not run to the end.
# - **Protein** gains 0.07 from 3,000 to 30,000 steps and 0.02 from there to 100,000, by the bound;
#   by the kernel estimate it is then at print. So the 3,000 steps of the table above cost LV-GP-GP
#   some 0.08 there.
# - **Power** gains 0.03 by the bound from 3,000 to 30,000 steps and 0.01 from there to 100,000, and
#   0.08 in all by the density.
#
# One thread, float64, seed 0, 11 to 41 minutes for the longer runs, on busy cores.
#
# ## Matrix-Gaussian networks
#
# VMG, a network with matrix-Gaussian posteriors over its weights: one hidden layer of 50 units and
# 10 pseudo-data pairs (yacht 5). The paper's objective (11) is no lower bound of the evidence, and
# no table here shows it. In brackets, what is printed, over 20 other splits.
#
# **By our training**, 60,000 steps by `protocol="networks"`, a cosine from 1e-2; mean ± standard
# error over splits 0 to 2. `python ci/study.py run --datasets boston concrete energy yacht power
# --models VMG --protocol networks --splits 0-2 --out studies/vmg`, 1 to 3 minutes a cell.

# %% tags=["hide-input"]
ours = kept_cells("matrix_gaussian", lambda cells: cells[cells["protocol"] == "networks"])
show_scores(ours, "test_log_likelihood", "rmse", paper="vmg")

# %% [markdown]
# **By the paper's own**, `protocol="vmg"`: Adam at 1e-3, and the average of the iterates. The paper
# prints neither its minibatches (here 20 rows) nor its steps ("until convergence"). Precisions have
# their best posterior at every step. `python ci/study.py run --datasets energy yacht --models VMG
# --num-steps 3000 --splits 0-2`, and the like:

# %% tags=["hide-input"]
theirs = kept_cells("matrix_gaussian", lambda cells: cells[cells["protocol"] == "vmg"])
rows = theirs.groupby(["dataset", "num_steps"])
rows = rows[["test_log_likelihood", "rmse"]].mean().assign(splits=rows.size())
rows.round(3)

# %% [markdown]
# On energy print has -1.45 ± 0.03 and an RMSE of 1.16 ± 0.03. On split 0 there are -1.83 and 1.25
# after 3,000 steps, 87 epochs, -1.52 and 0.81 after 6,000, and -1.23 and 0.58 after 14,000, so that
# print is passed by longer training alone. Where Adam learned the noise's posterior, as before, the
# noise lagged behind: -1.54, -1.49 and -1.40 after as many steps, ahead until the network has
# learned much and behind from there on. On yacht, where print has -1.29 and 0.77, 3,000 steps are
# far too few.

# %% [markdown]
# ## Time and calibration
#
# The papers' machines were others: boston ran on a CPU there, protein on a GPU. What carries over
# is the time of a step over that of the deep Gaussian process. The improved paper says that all its
# DWPs train faster than deep GPs. By its own Table 2, which the first table below is of, they take
# 0.28 to 0.44 of the time on boston and 0.90 to 0.96 on protein; here they are about level
# ("step_over_dgp"). Intervals should hold as many test rows as they say.

# %%
in_print = published("seconds_per_epoch", "improved")
of_dgp = in_print[in_print["model"] == "DGP"].set_index(["dataset", "depth"])["mean"]
in_print = in_print[in_print["model"] != "DGP"].set_index(["dataset", "depth", "model"])["mean"]
display((in_print / of_dgp).unstack("model").rename(columns=NAMES).round(2))
columns = ["dataset", "depth", "model", "splits", "seconds_per_step", "training_seconds"]
display(tables.runtime_table(regression)[[*columns, "step_over_dgp"]].round(3))
columns = ["dataset", "depth", "model", "crps", "coverage_50", "coverage_90", "coverage_95"]
tables.calibration_table(regression)[columns].round(3)
