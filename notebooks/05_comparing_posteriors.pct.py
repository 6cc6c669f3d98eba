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
# # Posteriors, side by side
#
# One data set, one prior, five approximate posteriors: the families GW, A and AB over Gram
# matrices, AB relative to the prior's scale ("whitened"), and the deep Gaussian process, whose
# posterior is one over features. The
# [guide](how-to/choose_depth_and_size.md#choose-a-posterior) says when to take which; here one can
# see what they do.

# %% tags=["hide-input"]
# %matplotlib inline
import os
import time

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gpflow_dwp import build_deep_gaussian_process, build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser, varying_sine
from gpflow_dwp.evaluation import PredictiveDistribution, plot_gram_matrices, plot_model_1d

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 4 if FAST else 3_000
SEEDS = range(1) if FAST else range(2)
DEPTH = 2 if FAST else 3

# %% [markdown]
# ## The data
#
# A sine whose frequency grows, 60 points with noise, and 500 more for the test.

# %%
X_raw, Y_raw = varying_sine(60, noise=0.1, seed=0)
inputs, target = Standardiser.fit(X_raw), Standardiser.fit(Y_raw)
data = inputs.transform(X_raw), target.transform(Y_raw)
X_new, Y_new = varying_sine(500, noise=0.1, seed=1)
test = inputs.transform(X_new), target.transform(Y_new)

# %% [markdown]
# ## Training
#
# Depth 3, two hidden layers with ν = 5, inducing points on 40 of the data, two seeds each. The
# bound is the mean over the last 200 steps; test log-likelihood is per point, with 100 draws; time
# is the processor's, with that of compiling. The last two columns are what the hidden layers'
# posteriors cost, in nats.

# %%
BUILDERS = {
    "GW": lambda **kwargs: build_deep_wishart_process(posterior="GW", **kwargs),
    "A": lambda **kwargs: build_deep_wishart_process(posterior="A", **kwargs),
    "AB": lambda **kwargs: build_deep_wishart_process(posterior="AB", **kwargs),
    "AB, whitened": lambda **kwargs: build_deep_wishart_process(whiten=True, **kwargs),
    "deep GP": build_deep_gaussian_process,
}
models, runs = {}, []
for seed in SEEDS:
    for name, build in BUILDERS.items():
        model = build(
            data=data,
            depth=DEPTH,
            width=5,
            num_inducing=40,
            output="pseudo_targets",
            seed=seed,
        )
        start = time.process_time()
        history = fit(model, data, NUM_STEPS, seed=seed, progress=False)
        seconds = time.process_time() - start
        distribution = PredictiveDistribution.of(model.posterior(seed=0), test[0])
        runs.append(
            {
                "posterior": name,
                "ELBO": history.elbo[-200:].mean(),
                "test log-likelihood": distribution.log_density(test[1]).mean(),
                "ms per step": 1e3 * seconds / NUM_STEPS,
                "layer 1": -history.log_ratios[-200:, 0].mean(),
                "layer 2": -history.log_ratios[-200:, 1].mean(),
            }
        )
        models.setdefault(name, model)
runs = pd.DataFrame(runs)
runs.groupby("posterior", sort=False).mean().round(3)

# %% [markdown]
# The first two, run by run:

# %%
figure = Figure(figsize=(9.0, 3.2), layout="constrained")
for axes, metric in zip(
    figure.subplots(1, 2, sharey=True), ("ELBO", "test log-likelihood"), strict=True
):
    for place, name in enumerate(BUILDERS):
        values = runs.loc[runs["posterior"] == name, metric]
        axes.plot(values, [place] * len(values), "o", color=f"C{place}", alpha=0.7)
    axes.set(yticks=range(len(BUILDERS)), yticklabels=BUILDERS, xlabel=metric)
    axes.grid(axis="x", alpha=0.3)
figure.axes[0].invert_yaxis()
figure.axes[0].set_xlabel("ELBO (nats)")
figure.axes[1].set_xlabel("test log-likelihood per point (nats)")
figure

# %% [markdown]
# The four posteriors over Gram matrices end within two nats of each other, and the deep GP, whose
# second layer pays more, about eight nats below them. This function does not ask much of them: two
# or three nats in each layer. On [the papers' data](14_measured.pct.py) the families differ more.
#
# ## Fits

# %%
figure = Figure(figsize=(13.0, 3.4), layout="constrained")
for axes, (name, model) in zip(
    figure.subplots(1, len(models), sharey=True), models.items(), strict=True
):
    plot_model_1d(model, data, axes, num_functions=3)
    axes.set(title=name, ylim=(-3.0, 3.5), ylabel="")
    axes.get_legend().remove()
figure.axes[0].set_ylabel("y")
handles = figure.axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
figure

# %% [markdown]
# ## Representations
#
# The top hidden layer's Gram matrix over x, averaged over draws: which inputs each posterior takes
# to be alike.

# %%
grid_raw = np.linspace(X_raw.min(), X_raw.max(), 100)[:, None]
grid, grams = inputs.transform(grid_raw), []
for model in models.values():
    gram = model.posterior(100, seed=0).gram_matrices(grid)[-1].numpy().mean(axis=0)
    grams.append(gram / gram.diagonal().mean())
axes = plot_gram_matrices(grams, list(models), x=grid_raw[:, 0])
axes[0].figure

# %% [markdown]
# All five take the points on the left, where the function is slow, to be alike, and set those on
# the right apart.
