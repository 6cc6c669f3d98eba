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
# # Conditional densities and matrix-Gaussian networks, beside print
#
# Two more papers' tables, rerun by `ci/study.py`. This notebook shows the results that are
# under version control in `ci/results`, beside the printed ones. It trains nothing.

# %% tags=["hide-input"]
# %matplotlib inline
import sys
from pathlib import Path

import gpflow_dwp

ROOT = Path(gpflow_dwp.__file__).resolve().parents[1]  # of a checkout
sys.path.append(str(ROOT / "ci"))
from uci.figures import plot_densities, plot_scores
from uci.tables import configurations, density_table, kept_cells, score_table

# %% [markdown]
# ## Conditional density estimation
#
# Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes with importance-weighted
# variational inference" (2019), section 6.2: log-likelihoods of standardised targets, with latent
# variables (LV) or without, by the evidence lower bound (VI) or the importance-weighted bound of
# five draws (IWVI). The paper trains for 100,000 steps, these cells took the steps shown here, by
# this package's own protocol (`--protocol cde-fast`). On kin8nm, LV-GP-GP was run twice: it gains
# by more steps.

# %%
densities = kept_cells("densities")
configurations(densities)

# %% [markdown]
# The paper's numbers are kernel density estimates from 2,000 draws of each marginal. Where a target
# lies far out these are far below the model's own density, which is a mixture that can be
# evaluated: *exact* is its mean, and what models should be compared by. `over_gp` and `over_vi`
# are differences of it over the same splits, from the single-layer GP and from the same model by
# VI.

# %%
columns = ["dataset", "model", "inference", "configuration", "splits"]
columns += ["exact", "kernel", "printed_mean"]
table = density_table(densities)
table[[*columns, "over_gp", "over_vi", "shapiro_wilk"]].round(3)

# %%
plot_densities(table)

# %% [markdown]
# ## Matrix-Gaussian networks
#
# Louizos and Welling, "Structured and efficient variational deep learning with matrix Gaussian
# posteriors" (2016), Table 1, by that paper's protocol, on three splits; the paper's own splits
# are others.

# %%
networks = kept_cells("matrix_gaussian")
configurations(networks)

# %%
scores = score_table(networks)
scores = scores[scores["metric"] != "elbo"]
columns = ["dataset", "metric", "splits", "mean", "standard_error", "vmg_mean"]
scores[[*columns, "vmg_standard_error", "vmg_difference_in_se", "vmg_verdict"]].round(3)

# %%
plot_scores(scores, "test_log_likelihood")
