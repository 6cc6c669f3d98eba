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
# # Counts: disasters in coal mines
#
# How many explosions in British coal mines killed ten people or more, year by year from 1851 to
# 1962: 191 in all (Jarrett, *Biometrika*, 1979). A Poisson likelihood takes counts as they are; the
# latent function is the logarithm of the rate.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from matplotlib.figure import Figure
from scipy.stats import poisson

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 5 if FAST else 4_000
NUM_DRAWS = 10 if FAST else 300

counts = np.array(
    [
        *(4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 4, 0, 2, 6, 3, 3, 5, 4, 5, 3, 1, 4, 4, 1, 5, 5),
        *(3, 4, 2, 5, 2, 2, 3, 4, 2, 1, 3, 2, 2, 1, 1, 1, 1, 3, 0, 0, 1, 0, 1, 1, 0, 0, 3, 1),
        *(0, 3, 2, 2, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1, 0, 2, 3, 3, 1, 1),
        *(2, 1, 1, 1, 1, 2, 4, 2, 0, 0, 0, 1, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1),
    ]
)
years = np.arange(1851, 1963)
print(
    f"{counts.sum()} disasters in {len(years)} years, {counts[:40].mean():.1f} a year up to 1890,"
)
print(f"{counts[40:].mean():.1f} a year from then on")

# %% [markdown]
# ## The model
#
# Years are standardised, counts are not. A priori the latent function lies around zero, which would
# stand for a rate of one a year; with the mean count as `binsize` it stands for the mean rate.

# %%
inputs = Standardiser.fit(years[:, None])
X, Y = inputs.transform(years[:, None]), counts[:, None].astype(float)


def train(rows, depth):
    """Fit a deep Wishart process of that depth to some of the years."""
    data = X[rows], Y[rows]
    model = build_deep_wishart_process(
        data,
        depth,
        width=5,
        num_inducing=30,
        inducing="kmeans",
        likelihood=gpflow.likelihoods.Poisson(binsize=counts[rows].mean()),
    )
    fit(model, data, NUM_STEPS, progress=False)
    return model


everything = np.arange(len(years))
models = {
    "Gaussian process": train(everything, 1),
    "deep Wishart process": train(everything, 2),
}

# %% [markdown]
# ## The rate
#
# Functions drawn from the posterior are logarithms of rates. From them come the rate's mean and
# quantiles, year by year; four draws show how it may have changed.

# %%
fine = np.linspace(1851, 1962, 60 if FAST else 300)
figure = Figure(figsize=(11.0, 4.0), layout="constrained")
for axes, (name, model) in zip(figure.subplots(1, 2, sharey=True), models.items(), strict=True):
    functions = model.predict_f_samples(inputs.transform(fine[:, None]), NUM_DRAWS, seed=0)
    rates = float(model.likelihood.binsize) * np.exp(functions.numpy()[..., 0])
    lower, upper = np.quantile(rates, [0.025, 0.975], axis=0)
    axes.bar(years, counts, width=1.0, color="0.85", label="disasters")
    axes.fill_between(fine, lower, upper, alpha=0.25, lw=0, label="95% interval of the rate")
    axes.plot(fine, rates[:4].T, color="C1", linewidth=0.8, alpha=0.8)
    axes.plot([], [], color="C1", linewidth=0.8, label="draws of the rate")
    axes.plot(fine, rates.mean(axis=0), color="C0", label="mean rate")
    axes.set(title=name, xlabel="year", xlim=(1850, 1963))
figure.axes[0].set_ylabel("a year")
figure.axes[0].legend(frameon=False)
figure

# %% [markdown]
# Both models see the rate fall from three a year to one between 1880 and 1900, and rise a little in
# the 1930s. Draws of the deep Wishart process are not all equally smooth: some change fast at one
# time and slowly at another, which those of a stationary Gaussian process do not.
#
# ## Predicted counts
#
# `predict_log_density` is the logarithm of the probability of a count; over all counts it makes the
# predictive distribution. Summed over the years, it says how many years with none, one, two ...
# disasters the model expects. With one rate for all years there would be too few years without a
# disaster, and too few with many.

# %%
possible = np.arange(8)
expected = {}
for name, model in models.items():
    posterior = model.posterior(NUM_DRAWS, seed=0)
    expected[name] = [
        float(tf.reduce_sum(tf.exp(posterior.predict_log_density((X, np.full_like(Y, count))))))
        for count in possible
    ]
one_rate = len(years) * poisson.pmf(possible, counts.mean())
figure = Figure(figsize=(7.0, 3.6), layout="constrained")
axes = figure.subplots()
axes.bar(possible, np.bincount(counts, minlength=8), color="0.85", label="observed")
every = {**expected, "one rate for all years": one_rate}
for shift, marker, (name, number) in zip((-0.2, 0.0, 0.2), "osx", every.items(), strict=True):
    axes.plot(possible + shift, number, marker, label=name)
axes.set(xlabel="disasters in a year", ylabel="years")
axes.legend(frameon=False)
figure

# %% [markdown]
# ## Years that were left out
#
# Every fourth year is left out in turn, four times, so that each year is predicted once by models
# that have not seen it.

# %%
scores = {name: np.zeros(len(years)) for name in ("one rate", *models)}
for fold in range(1 if FAST else 4):
    test = years % 4 == fold
    scores["one rate"][test] = poisson.logpmf(counts[test], counts[~test].mean())
    for name, depth in (("Gaussian process", 1), ("deep Wishart process", 2)):
        posterior = train(~test, depth).posterior(NUM_DRAWS, seed=0)
        scores[name][test] = posterior.predict_log_density((X[test], Y[test]))
table = pd.DataFrame(scores)
pd.DataFrame(
    {
        "log probability": table.mean(),
        "above one rate": table.sub(table["one rate"], axis=0).mean(),
        "± standard error": table.sub(table["one rate"], axis=0).sem(),
    }
).round(3)

# %% [markdown]
# That the rate changes is worth about 0.3 nats for each year. That its smoothness may change, too,
# is worth next to nothing here: 112 small numbers do not say.
