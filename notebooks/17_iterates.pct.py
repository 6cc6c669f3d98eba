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
# # Factor analysis of a stream, and posteriors over training iterates
#
# The parameters that a training run passes through are vectors of many thousand numbers, too many
# of them to keep. Online factor analysis fits a Gaussian with covariance $FF^\top + \Psi$ to such a
# stream: $F$ has $K$ columns, $\Psi$ is diagonal, and each vector is used once and forgotten
# (Brownlie, *Extending the Bayesian deep learning method MultiSWAG*, 2021).

# %% tags=["hide-input"]
# %matplotlib inline
import os
from itertools import pairwise, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.decomposition import FactorAnalysis

import gpflow_dwp
from gpflow_dwp.data import varying_sine
from gpflow_dwp.iterates import (
    SWAG,
    FactorAnalysisPosterior,
    FactorModel,
    IterateAverage,
    MultiSWAG,
    OnlineEM,
    OnlineGradientAscent,
    observe_all,
)
from gpflow_dwp.training import Adam

FAST = bool(os.environ.get("GPFLOW_DWP_FAST"))

# %% [markdown]
# A stream of 5,000 vectors with 30 entries and three factors, from a model whose conditioning is
# known: its factors are the first eigenvectors of $AA^\top$, for a matrix $A$ of standard normal
# numbers, each times a number $s_k$ (algorithm 3 of the thesis, which draws $D$ numbers $s^2$ and
# lets the largest of all bound the noise variances). An algorithm has a state, which one vector
# after another updates; `observe_all` does so in one compiled loop.


# %%
def generate_factor_model(
    dimension: int, rank: int, spectrum: tuple[float, float], seed: int
) -> FactorModel:
    """Draw a factor model whose s² are uniform over an interval."""
    rng = np.random.default_rng(seed)
    mean, root = rng.standard_normal(dimension), rng.standard_normal((dimension, dimension))
    vectors = np.linalg.eigh(root @ root.T)[1][:, : -rank - 1 : -1]
    squares = rng.uniform(*spectrum, dimension)
    variances = rng.uniform(0.0, squares.max(), dimension)
    return FactorModel(mean, vectors * np.sqrt(squares[:rank]), variances)


def wasserstein_distance(first: FactorModel, second: FactorModel) -> float:
    """The 2-Wasserstein distance of two Gaussians (Givens and Shortt, 1984)."""
    covariances = [np.asarray(model.covariance()) for model in (first, second)]
    root = np.linalg.cholesky(covariances[0])
    overlap = np.sqrt(np.maximum(np.linalg.eigvalsh(root.T @ covariances[1] @ root), 0.0)).sum()
    square = np.sum((first.mean - second.mean) ** 2) + sum(map(np.trace, covariances))
    return float(np.sqrt(max(square - 2.0 * overlap, 0.0)))


truth = generate_factor_model(30, 3, (1.0, 10.0), seed=0)
stream = truth.sample(5_000, seed=1)
for algorithm in (OnlineGradientAscent(rank=3), OnlineEM(rank=3)):
    state = observe_all(algorithm, algorithm.init(30), stream)
    model = algorithm.model(state)
    difference = np.linalg.norm(truth.covariance() - model.covariance())
    print(
        f"{type(algorithm).__name__:21} covariances, relative Frobenius distance "
        f"{difference / np.linalg.norm(truth.covariance()):.3f}; "
        f"2-Wasserstein distance {wasserstein_distance(truth, model):.3f}"
    )

# %% [markdown]
# The result is a distribution of TensorFlow Probability, whose density needs matrices of $K$ by
# $K$ only.

# %%
model.as_distribution()

# %% [markdown]
# What online EM found, beside the truth. Colours end at the largest entry off the diagonal.

# %%
fig, axes = plt.subplots(1, 2, figsize=(7.0, 3.3), layout="constrained")
off_diagonal = tf.linalg.set_diag(truth.covariance(), tf.zeros(30, tf.float64))
limit = float(tf.reduce_max(tf.abs(off_diagonal)))
for axis, (name, shown) in zip(axes, {"truth": truth, "online EM": model}.items(), strict=True):
    image = axis.imshow(shown.covariance(), vmin=-limit, vmax=limit, cmap="RdBu_r")
    axis.set_title(f"covariance, {name}")
_ = fig.colorbar(image, ax=axes, shrink=0.8)

# %% [markdown]
# ## How well the factors are found
#
# The thesis draws vectors from factor models with $K = 10$ and compares online EM, online gradient
# ascent (SGA) and batch factor analysis by SVD (scikit-learn) after 100 to 100,000 of them, for
# three ranges of the factors' squared lengths; its Figures 5.1 and 5.2, for $D = 100$ and 1000.
# Here are three models of each range with $D = 100$, and up to 10,000 vectors; bars are a standard
# error.

# %%
COUNTS = [200, 500] if FAST else [200, 500, 1_000, 2_000, 5_000, 10_000]
rows = []
for largest, trial in product((10.0,) if FAST else (10.0, 100.0, 1_000.0), range(1 if FAST else 3)):
    truth = generate_factor_model(100, 10, (1.0, largest), seed=trial)
    stream, size = truth.sample(COUNTS[-1], seed=trial), np.linalg.norm(truth.covariance())
    algorithms = {"EM": OnlineEM(rank=10), "SGA": OnlineGradientAscent(rank=10)}
    states = {name: each.init(100) for name, each in algorithms.items()}
    for seen, count in pairwise([0, *COUNTS]):
        batch = FactorAnalysis(10, svd_method="lapack").fit(stream[:count])
        found = {"SVD": FactorModel(batch.mean_, batch.components_.T, batch.noise_variance_)}
        for name, each in algorithms.items():
            states[name] = observe_all(each, states[name], stream[seen:count])
            found[name] = each.model(states[name])
        for name, model in found.items():
            distance = np.linalg.norm(truth.covariance() - model.covariance()) / size
            distances = distance, wasserstein_distance(truth, model)
            rows.append([largest, name, count, *distances])
metrics = ["relative Frobenius distance", "2-Wasserstein distance"]
table = pd.DataFrame(rows, columns=["largest", "algorithm", "vectors", *metrics])
summary = table.groupby(["largest", "algorithm", "vectors"]).agg(["mean", "sem"])

fig, axes = plt.subplots(2, 3, figsize=(12.0, 5.2), sharex=True, layout="constrained")
for (row, column), axis in np.ndenumerate(axes[:, : table["largest"].nunique()]):
    metric, largest = metrics[row], table["largest"].unique()[column]
    for name in ("EM", "SGA", "SVD"):
        line = summary.loc[largest, name][metric]
        axis.errorbar(line.index, line["mean"], line["sem"], label=name, marker=".")
    axis.set(xscale="log", yscale="log", title=f"spectrum [1, {largest:g}]", ylabel=metric)
    axis.yaxis.set_minor_formatter("")
axes[0, 0].legend()
summary[metrics[0]]["mean"].unstack("algorithm").unstack("largest").round(3)

# %% [markdown]
# As in the thesis, online EM is ahead of SGA, without a learning rate to choose. It is ahead of the
# batch algorithm after 200 vectors and behind it after 1,000; for spectra [1, 1000] it learns
# little after that.

# %% [markdown]
# ## Posteriors over training iterates
#
# Stochastic gradients never come to rest, and where they wander says something about what else
# would fit. SWA averages those iterates, SWAG (Maddox et al., 2019) and factor analysis fit
# Gaussians to them. This section does so for a model of this package, looks at linear regression,
# where the right answer is known, and asks whether it helps a deep Wishart process.

# %% [markdown]
# ### With any model
#
# A posterior is a callback. It collects the model's trainable parameters, in their unconstrained
# space, each time that it is called. First the model is trained; then training goes on at a
# constant rate. So from three starts, because a Gaussian knows one optimum only: `MultiSWAG`
# (Wilson and Izmailov, 2020) mixes the SWAG posteriors of several runs. With a factor analysis for
# each member instead it is what the thesis has in its title.


# %%
def run_from(start: int) -> list:
    """Train a model from one start, and collect iterates in three ways."""
    model = gpflow_dwp.build_deep_wishart_process(
        data, depth=2, num_inducing=20, output="pseudo_targets", seed=start
    )
    gpflow_dwp.fit(model, data, 60 if FAST else 3_000, seed=start, progress=False)
    posteriors = [
        IterateAverage(model),
        SWAG(model, rank=10),
        FactorAnalysisPosterior(model, OnlineEM(rank=10, warm_up=20)),
    ]
    gpflow_dwp.fit(
        model,
        data,
        100 if FAST else 1_000,
        optimizer=Adam(3e-3),
        kl_annealing_steps=0,
        callbacks=posteriors,
        callback_interval=4,
        progress=False,
    )
    return posteriors


data = varying_sine(60, seed=0)
averages, swags, analyses = zip(*(run_from(start) for start in range(3)), strict=True)
posteriors = {
    "SWA": averages[0],
    "SWAG": swags[0],
    "factor analysis": analyses[0],
    "MultiSWAG": MultiSWAG(swags),
    "MultiSWAG of factor analyses": MultiSWAG(analyses),
}

# %% [markdown]
# Their predictions are mixtures over draws of the parameters, twelve here, four of each member; the
# model's own parameters are put back afterwards. Log densities are means over 200 points that were
# not trained on.

# %%
X = np.linspace(-1.2, 1.2, 121)[:, None]
held_out = varying_sine(200, seed=1)
fig, axes = plt.subplots(1, 5, figsize=(15.0, 3.0), sharey=True, layout="constrained")
for axis, (title, posterior) in zip(axes, posteriors.items(), strict=True):
    density = posterior.predict_log_density(held_out, 12, num_samples=20)
    print(f"{title:28} log density {np.mean(density):.3f}")
    mean, variance = (part.numpy()[:, 0] for part in posterior.predict_y(X, 12, num_samples=20))
    axis.fill_between(
        X[:, 0], mean - 2.0 * np.sqrt(variance), mean + 2.0 * np.sqrt(variance), alpha=0.3
    )
    axis.plot(X[:, 0], mean)
    axis.plot(*data, "k.", markersize=3)
    axis.set_title(title, fontsize=10)
    axis.set(xlabel="x", ylim=(-2.5, 2.5))

# %% [markdown]
# ### Linear regression, where the posterior is known
#
# 1,000 points in two dimensions, as in the thesis's Figures 6.1 and 6.2: the model is pretrained by
# 500 epochs of stochastic gradient descent on the mean squared error, at a learning rate η of 0.001
# with minibatches of 100 rows, and then goes on for 100 epochs with another η and a weight decay λ.
# Red: these iterates, and in the last panel their means over windows of 50 at minibatches of 10
# rows. Ellipses: the exact posterior, at one, two and three standard deviations. White: the
# pretrained weights; black: the mean of the red points.


# %%
def linear_problem(seed: int) -> tuple[np.ndarray, ...]:
    """Return inputs [1000, 2], targets, and mean and covariance of the weights' posterior."""
    rng = np.random.default_rng(seed)
    inputs = rng.multivariate_normal(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], 1_000)
    weights = 10.0 * rng.standard_normal(2)
    targets = inputs @ weights + np.sqrt(10.0) * rng.standard_normal(1_000)
    covariance = np.linalg.inv(0.01 * np.eye(2) + 0.1 * inputs.T @ inputs)
    return inputs, targets, 0.1 * covariance @ inputs.T @ targets, covariance


def iterates(
    start: np.ndarray, rate: float, weight_decay: float, batch_size: int = 100, epochs: int = 100
) -> np.ndarray:
    """The weights after every step of stochastic gradient descent."""
    rng, weights, found = np.random.default_rng(1), start, []
    for _ in range(epochs):
        for rows in rng.permutation(1_000).reshape(-1, batch_size):
            residuals = inputs[rows] @ weights - targets[rows]
            gradient = 2.0 / batch_size * inputs[rows].T @ residuals
            weights = weights - rate * (gradient + weight_decay * weights)
            found.append(weights)
    return np.array(found)


inputs, targets, mean, covariance = linear_problem(seed=0)
pretrained = iterates(np.zeros(2), 0.001, 0.001, epochs=500)[-1]
panels = {
    f"η = {rate}, λ = {decay}": iterates(pretrained, rate, decay)
    for rate in (0.1, 0.01)
    for decay in (0.1, 0.001)
}
windows = iterates(pretrained, 0.1, 0.001, batch_size=10).reshape(-1, 50, 2).mean(axis=1)
panels["η = 0.1, λ = 0.001, means of 50"] = windows
circle = np.stack([np.cos(t := np.linspace(0.0, 2.0 * np.pi, 100)), np.sin(t)])
root = np.linalg.cholesky(covariance)
fig, axes = plt.subplots(1, 5, figsize=(15.0, 3.2), layout="constrained")
for axis, (title, points) in zip(axes, panels.items(), strict=True):
    axis.plot(*points.T, "r.", markersize=2, alpha=0.5)
    for radius in (1.0, 2.0, 3.0):
        axis.plot(*(mean[:, None] + radius * root @ circle), "k", linewidth=0.8)
    axis.plot(*pretrained, "wo", markeredgecolor="k", markersize=5)
    axis.plot(*points.mean(axis=0), "k*", markersize=8)
    axis.set_title(title, fontsize=10)

# %% [markdown]
# The thesis's Table 6.1: distances of the iterates' mean and covariance from the posterior's, with
# the printed values beside ours, both of 10 trials. Its Wasserstein distances can only be squares,
# and so are ours here. Its λ = 0.1 is the ratio α/β of the precisions, which belongs to a
# loss that is a sum over all data. For a mean over data the posterior's own λ is 2 α / (β N) =
# 0.0002: the biased mean at λ = 0.1 says nothing about stochastic gradients.

# %%
printed = {
    (0.1, 0.1): ["0.0666 ± 0.0078", "0.6200 ± 0.0750", "1.3480 ± 0.5087"],
    (0.1, 0.001): ["0.0006 ± 0.0001", "0.8065 ± 0.0101", "0.0078 ± 0.0004"],
    (0.01, 0.1): ["0.0620 ± 0.0070", "1.7110 ± 0.6187", "1.1776 ± 0.4434"],
    (0.01, 0.001): ["0.0010 ± 0.0002", "0.9870 ± 0.0042", "0.0219 ± 0.0006"],
}
metrics = ["of means", "of covariances", "Wasserstein, squared"]
rows = []
for trial in range(2 if FAST else 10):
    inputs, targets, mean, covariance = linear_problem(seed=trial)
    truth = FactorModel(mean, np.linalg.cholesky(covariance), np.zeros(2))
    pretrained = iterates(np.zeros(2), 0.001, 0.001, epochs=500)[-1]
    for rate, decay in [*printed, (0.1, 0.0002)]:
        found = iterates(pretrained, rate, decay)
        spread = np.cov(found.T)
        model = FactorModel(found.mean(axis=0), np.linalg.cholesky(spread), np.zeros(2))
        distances = [
            np.linalg.norm(model.mean - mean) / np.linalg.norm(mean),
            np.linalg.norm(spread - covariance) / np.linalg.norm(covariance),
            wasserstein_distance(truth, model) ** 2,
        ]
        rows.append([rate, decay, *distances])
ours = pd.DataFrame(rows, columns=["η", "λ", *metrics]).groupby(["η", "λ"])[metrics]
ours = ours.mean().map("{:.4f}".format) + " ± " + ours.sem().map("{:.4f}".format)
beside = pd.DataFrame.from_dict(printed, orient="index", columns=metrics)
beside.index = pd.MultiIndex.from_tuples(beside.index, names=ours.index.names)
pd.concat({"measured": ours, "printed": beside}, axis="columns").fillna("")

# %% [markdown]
# An ensemble of linear models predicts like the mean of its draws, so that the test errors of the
# thesis's Figure 6.3 can gain by nothing but SWA; it is not made again here.
