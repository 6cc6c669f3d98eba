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
# # Latent variables: densities that are not Gaussian
#
# A Gaussian process has Gaussian marginals, and those of a deep one are nearly Gaussian: where
# there are many data its posterior is almost a function. A latent variable $w_n \sim N(0, 1)$ of
# each point, one more *input* of a process, makes marginals of any form ("Deep Gaussian processes
# with importance-weighted variational inference", Salimbeni, Dutordoir, Hensman and Deisenroth,
# 2019).
#
# In the models' names LV stands for such a layer, GP for a layer of Gaussian processes, bottom
# first. All are compared on three problems of one input: a fork, noise that grows, and the letters
# of the example in one dimension of the paper.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from scipy.special import expit
from scipy.stats import norm
from tabulate import tabulate

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.latent_variable_deep_gp import (
    LatentVariableLayer,
    LatentVariableProcess,
    NetworkEncoder,
    build_latent_variable_deep_gp,
)

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_DRAWS = 10 if FAST else 1_000
NUM_DATA = 40 if FAST else 500
IMPORTANCE_SAMPLES = 2 if FAST else 5

# %% [markdown]
# ## Draws from the priors
#
# Each panel has one function of inputs and latent variables, drawn from the prior by a posterior
# that has not left it, and 400 points of it, each with its own latent variable.

# %%
figure = Figure(figsize=(14, 2.6), layout="constrained")
x = np.linspace(-2.0, 2.0, 40 if FAST else 400)[:, None]
for axes, name in zip(figure.subplots(1, 4), ("GP", "GP-GP", "LV-GP", "LV-GP-GP"), strict=True):
    model = build_latent_variable_deep_gp((x, x), name, num_inducing=20, seed=1)
    for layer in model.layers:
        if hasattr(layer, "q_sqrt"):
            layer.q_sqrt.assign(np.tile(np.eye(layer.num_inducing), [layer.num_functions, 1, 1]))
    axes.plot(x, model.predict_f_samples(x, seed=2), ".", markersize=2)
    axes.set_title(name)
figure

# %% [markdown]
# ## One way to train them all
#
# Models with latent variables are trained by the importance-weighted bound, with five draws of
# each. All take this package's own protocol. (The paper takes natural gradients for a deep GP's
# final layer, which `fit` knows as `protocol="natural"`, and 100,000 steps.)

# %%
NAMES = ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP")


def train_model(name, data, num_inducing, num_steps):
    """Build and fit the model of that name."""
    model = build_latent_variable_deep_gp(data, name, num_inducing=num_inducing)
    fit(
        model,
        data,
        num_steps,
        batch_size=256,
        num_importance_samples=IMPORTANCE_SAMPLES if "LV" in name else 1,
        progress=False,
    )
    return model


def log_density(model, x, y):
    """Log density of y [..., N] at x [N, 1]: that of a mixture of Gaussians, one for each draw."""
    distribution = PredictiveDistribution.of(model.posterior(NUM_DRAWS, seed=0), x)
    rows = np.reshape(y, (-1, len(x), 1))
    return np.reshape([distribution.log_density(row) for row in rows], np.shape(y))


# %% [markdown]
# ## A fork, and noise that grows
#
# One problem is bimodal: two branches part half way, and each point lies on one of them by chance.
# In the other the noise grows from left to right. Both densities are known, and branches and noise
# are such that inputs and outputs need no standardising.


# %%
class Bimodal:
    """y = ± b(x) + noise, where the branches b part at -0.5."""

    title = "bimodal"
    noise = 0.15

    def branch(self, x):
        return 0.9 * np.logaddexp(0.0, 4.0 * (x + 0.5)) / 4.0

    def sample(self, x, rng):
        signs = np.where(rng.uniform(size=x.shape) < 0.5, -1.0, 1.0)
        return signs * self.branch(x) + self.noise * rng.normal(size=x.shape)

    def log_density(self, x, y):
        branches = [norm.logpdf(y, sign * self.branch(x), self.noise) for sign in (-1.0, 1.0)]
        return np.logaddexp(*branches) - np.log(2.0)


class Heteroscedastic:
    """y = sin 2x + noise, whose standard deviation grows from 0.05 to 1."""

    title = "heteroscedastic"

    def scale(self, x):
        return 0.05 + 0.95 * expit(3.0 * x)

    def sample(self, x, rng):
        return np.sin(2.0 * x) + self.scale(x) * rng.normal(size=x.shape)

    def log_density(self, x, y):
        return norm.logpdf(y, np.sin(2.0 * x), self.scale(x))


def draw_data(problem, num_data, seed):
    """Inputs, uniform on [-2, 2], and outputs, [N, 1] each."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(num_data, 1))
    return X, problem.sample(X, rng)


# %%
FEW = ("GP", "LV-GP") if FAST else NAMES
problems = (Bimodal(), Heteroscedastic())
models = {
    problem.title: {
        name: train_model(
            name,
            draw_data(problem, NUM_DATA, 0),
            num_inducing=8 if FAST else 30,
            num_steps=4 if FAST else 5_000,
        )
        for name in FEW
    }
    for problem in problems
}

# %% [markdown]
# ### Densities, on the same axes

# %%
x_grid = np.linspace(-2.0, 2.0, 30 if FAST else 150)[:, None]
y_grid = np.linspace(-3.0, 3.0, 25 if FAST else 120)[:, None]
x_all, y_all = np.broadcast_arrays(x_grid.T, y_grid)


def show(axes, log_density, title):
    """Draw a density, cut where it is high."""
    axes.pcolormesh(
        x_grid[:, 0], y_grid[:, 0], np.exp(log_density), cmap="Blues", vmin=0.0, vmax=1.0
    )
    axes.set_title(title, fontsize="medium")


figure = Figure(figsize=(14, 5), layout="constrained")
panels = figure.subplots(2, 1 + len(FEW), sharex=True, sharey=True)
for row, problem in zip(panels, problems, strict=True):
    X, Y = draw_data(problem, NUM_DATA, 0)
    show(row[0], problem.log_density(x_all, y_all), f"{problem.title}, exact")
    row[0].plot(X[:, 0], Y[:, 0], "k.", markersize=1)
    row[0].set_ylim(-3.0, 3.0)
    for axes, (name, model) in zip(row[1:], models[problem.title].items(), strict=True):
        show(axes, log_density(model, x_grid, y_all), name)
figure.supxlabel("x")
figure.supylabel("y")
figure

# %% [markdown]
# ### Test log-likelihood per point
#
# Of points that were not in training, with the standard error of their mean; and the mean paired
# difference from the density that the points were drawn from, which none can exceed but by chance.

# %%
rows = []
for problem in problems:
    X, Y = draw_data(problem, NUM_DATA, 1)
    exact = problem.log_density(X, Y)[:, 0]
    scores = {name: log_density(m, X, Y[:, 0]) for name, m in models[problem.title].items()}
    for name, score in {**scores, "exact": exact}.items():
        error = score.std(ddof=1) / np.sqrt(len(score))
        measured = f"{score.mean():.3f} ± {error:.3f}"
        rows.append([problem.title, name, measured, f"{np.mean(score - exact):+.3f}"])
print(
    tabulate(
        rows, headers=["data", "model", "test log-likelihood", "from exact"], disable_numparse=True
    )
)

# %% [markdown]
# Without latent variables one width of noise has to do for all inputs. One latent variable comes
# close to the truth on both problems; the fork needs a layer more than the changing noise does.
#
# ### Marginals
#
# At three inputs of the fork, beside the exact ones (black).

# %%
figure = Figure(figsize=(12, 2.6), layout="constrained")
for axes, place in zip(figure.subplots(1, 3), (-1.5, 0.0, 1.5), strict=True):
    at, x_one = y_grid[:, 0], np.array([[place]])
    axes.plot(at, np.exp(Bimodal().log_density(place, at)), "k")
    for name in ("GP", "LV-GP-GP"):
        if name in models["bimodal"]:
            axes.plot(at, np.exp(log_density(models["bimodal"][name], x_one, y_grid)), label=name)
    axes.set_title(f"x = {place}")
axes.legend()
figure

# %% [markdown]
# ### How many importance samples
#
# The bound per point of the fork's LV-GP, by the number K of draws that it is evaluated with. More
# than 20 add little.

# %%
data = draw_data(Bimodal(), NUM_DATA, 0)
for K in (1, 2, 5, 20, 100):
    seeds = range(1 if FAST else 5)
    bounds = [
        models["bimodal"]["LV-GP"].elbo(data, num_importance_samples=K, seed=s) for s in seeds
    ]
    print(f"K = {K:3d}: {np.mean(bounds) / NUM_DATA:.3f}")

# %% [markdown]
# ### The noise of the encoder's gradient
#
# With more draws there is less for the encoder to do, and its gradient drowns in noise; the paper
# leaves doubly reparameterised gradients as a way out. `doubly_reparameterised=True` of the
# builder, or of a `LatentVariableLayer`, takes them: of the same expectation, and without noise
# where the encoder's posterior is exact. Here is the standard deviation of the gradient, from seed
# to seed, over all parameters of the encoder, in nats per point.

# %%
model = models["bimodal"]["LV-GP"]
latent = model.layers[0]
parameters = latent.encoder.trainable_variables
print("  K   plain  doubly reparameterised")
for K in (2, 20) if FAST else (2, 5, 20, 100):
    noise = []
    for latent.doubly_reparameterised in (False, True):
        gradients = []
        for seed in range(2 if FAST else 40):
            with tf.GradientTape() as tape:
                bound = model.elbo(data, num_importance_samples=K, seed=seed) / NUM_DATA
            parts = tape.gradient(bound, parameters)
            gradients.append(np.concatenate([np.ravel(part) for part in parts]))
        noise.append(np.sqrt(np.var(gradients, axis=0, ddof=1).sum()))
    print(f"{K:3d} {noise[0]:7.4f} {noise[1]:7.4f}")

# %% [markdown]
# Doubly reparameterised they are less noisy from K = 5 on, by a factor of up to six. Where the
# encoder is far from the posterior, as before training, they can be noisier.

# %% [markdown]
# ### In front of a deep Wishart process
#
# The same layer goes in front of any process whose layers draw Gram matrices ("LV-DWP"). Such a
# process is built as if the latent variables were further inputs, drawn from their prior. Below
# are test log-likelihoods on the fork: with latent variables both kinds are far ahead of a GP.

# %%
X, Y = data
wider = np.hstack([X, np.random.default_rng(0).standard_normal((len(X), 1))])
process = build_deep_wishart_process(
    (wider, Y), depth=2, num_inducing=8 if FAST else 30, output="pseudo_targets"
)
latent = LatentVariableLayer(NetworkEncoder(num_inputs=2, seed=0))
model = LatentVariableProcess(
    [latent, *process.layers], process.likelihood, process.inducing_variable, len(X)
)
fit(
    model,
    data,
    4 if FAST else 5_000,
    batch_size=256,
    num_importance_samples=IMPORTANCE_SAMPLES,
    progress=False,
)
X, Y = draw_data(Bimodal(), NUM_DATA, 1)
for name, each in {**models["bimodal"], "LV-DWP": model}.items():
    print(f"{name:12} {log_density(each, X, Y[:, 0]).mean():6.3f}")

# %% [markdown]
# ## The letters of "DGP"
#
# Points lie on a grid inside three letters; their horizontal coordinate is the input, the vertical
# one the output. The density has one, two or three modes, flat tops, and jumps where strokes begin.
# A tenth of the points is held out.


# %%
def points_in_letters(text, spacing):
    """Coordinates of the grid points within the letters, [N, 2]."""
    outline = TextPath((0.0, 0.0), text, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    lower, upper = outline.get_extents().get_points()
    axes = [
        np.arange(start + 0.5 * spacing, end, spacing)
        for start, end in zip(lower, upper, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    # A point lies within where an odd number of outlines goes round it: not in a letter's hole.
    inside = [polygon_contains(polygon, grid) for polygon in outline.to_polygons()]
    return grid[np.sum(inside, axis=0) % 2 == 1]


def polygon_contains(polygon, points):
    """Whether points lie inside a polygon: whether a ray to the right crosses its edges oddly."""
    start, end = polygon[:-1], polygon[1:]
    x, y = points[:, :1], points[:, 1:]
    spans = (start[:, 1] > y) != (end[:, 1] > y)
    height = np.where(end[:, 1] == start[:, 1], 1.0, end[:, 1] - start[:, 1])
    crossing = start[:, 0] + (y - start[:, 1]) / height * (end[:, 0] - start[:, 0])
    return np.sum(spans & (crossing > x), axis=1) % 2 == 1


points = np.random.default_rng(0).permutation(points_in_letters("DGP", 0.6 if FAST else 0.2))
held_out = len(points) // 10
inputs, target = Standardiser.fit(points[held_out:, :1]), Standardiser.fit(points[held_out:, 1:])
X, Y = inputs.transform(points[:, :1]), target.transform(points[:, 1:])
train, test = (X[held_out:], Y[held_out:]), (X[:held_out], Y[:held_out])
print(f"{len(train[0])} training points, {len(test[0])} test points")

# %%
letter_models = {
    name: train_model(name, train, num_inducing=10 if FAST else 50, num_steps=4 if FAST else 10_000)
    for name in FEW
}

# %% [markdown]
# ### Their densities, on the same axes

# %%
x_grid = np.linspace(X.min() - 0.2, X.max() + 0.2, 40 if FAST else 200)[:, None]
y_grid = np.linspace(Y.min() - 0.7, Y.max() + 0.7, 30 if FAST else 120)[:, None]


def draw_density(axes, model):
    """Draw the density, which is cut at the height of the letters' own, or so."""
    density = np.exp(log_density(model, x_grid, np.repeat(y_grid, len(x_grid), axis=1)))
    axes.pcolormesh(x_grid[:, 0], y_grid[:, 0], density, cmap="Blues", vmin=0.0, vmax=1.2)


figure = Figure(figsize=(12, 6), layout="constrained")
panels = figure.subplots(3, 2, sharex=True, sharey=True).ravel()
panels[0].plot(X[:, 0], Y[:, 0], "k.", markersize=2)
panels[0].set_title("data")
print("test log-likelihood per point, standardised units")
for axes, (name, model) in zip(panels[1:], letter_models.items(), strict=False):
    draw_density(axes, model)
    score = log_density(model, test[0], test[1][:, 0]).mean()
    axes.set_title(f"{name}: {score:.2f}")
    print(f"{name:12} {score:6.2f}")
figure.supxlabel("input, standardised")
figure.supylabel("output, standardised")
figure

# %% [markdown]
# A deep GP without latent variables can shift and widen one hump, no more. One latent variable
# makes outlines, and each further layer makes them sharper: the hole of the D, the tongue of the G.
# The gap between G and P is the hardest, for none of the models can jump.
