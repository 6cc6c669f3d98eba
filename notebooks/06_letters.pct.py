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
# # Latent variables: the letters of "DGP" as conditional densities
#
# A one-dimensional problem of "Deep Gaussian processes with importance-weighted variational
# inference" (Salimbeni, Dutordoir, Hensman and Deisenroth, 2019, section 4.1). Points lie on a grid
# inside three letters; their horizontal coordinate is the input, the vertical one the output. The
# density of the output has one, two or three modes, flat tops, and jumps where strokes begin.
#
# A Gaussian process has Gaussian marginals, and so has, nearly, a deep one: its posterior is almost
# a function where there are many data. A latent variable $w_n \sim N(0, 1)$ of each point, one more
# *input* of a process, makes marginals of any form. In the models' names LV stands for it, GP for a
# layer of processes, bottom first. DWP is a deep Wishart process with two layers.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from gpflow_dwp import Estimator, build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import mixture_log_density
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 6 if FAST else 10_000
NUM_DRAWS = 20 if FAST else 1_000
IMPORTANCE_SAMPLES = 2 if FAST else 5
NUM_INDUCING = 10 if FAST else 50

# %% [markdown]
# ## The data
#
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


points = np.random.default_rng(0).permutation(points_in_letters("DGP", 0.2))
held_out = len(points) // 10
inputs, target = Standardiser.fit(points[held_out:, :1]), Standardiser.fit(points[held_out:, 1:])
X, Y = inputs.transform(points[:, :1]), target.transform(points[:, 1:])
train, test = (X[held_out:], Y[held_out:]), (X[:held_out], Y[:held_out])
print(f"{len(train[0])} training points, {len(test[0])} test points")

# %% [markdown]
# ## Six models
#
# Those with latent variables are trained by the importance-weighted bound, with five draws of each.
# All take this package's own protocol. (The paper takes natural gradients for a deep GP's final
# layer, which `fit` knows as `protocol="natural"`, and 100,000 steps.)

# %%
NAMES = ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP")


def train_model(name):
    """Build and fit the model of that name."""
    if name == "LV-DWP":
        settings = {"posterior": "A", "num_inducing": NUM_INDUCING, "latent_dim": 1}
        model = build_deep_wishart_process(train, 2, **settings)
    else:
        model = build_latent_variable_deep_gp(train, name, num_inducing=NUM_INDUCING)
    fit(
        model,
        train,
        NUM_STEPS,
        batch_size=256,
        estimator=Estimator(IMPORTANCE_SAMPLES if "LV" in name else 1),
        progress=False,
    )
    return model


models = {name: train_model(name) for name in NAMES}

# %% [markdown]
# ## Their densities
#
# Each prediction is a mixture of Gaussians, one for each draw of the model and its latent
# variables; its density needs no estimate.

# %%
x_grid = np.linspace(X.min() - 0.2, X.max() + 0.2, 40 if FAST else 200)[:, None]
y_grid = np.linspace(Y.min() - 0.7, Y.max() + 0.7, 30 if FAST else 120)[:, None]


def log_density(model, x, y):
    """Log density of y [..., N] at x [N, 1]."""
    moments = model.posterior(NUM_DRAWS, seed=0).predict_y_components(x)
    means, variances = (moment.numpy()[..., 0] for moment in moments)
    return mixture_log_density(y, means, variances)


def draw_density(axes, model):
    """Draw the density, which is cut at the height of the letters' own, or so."""
    density = np.exp(log_density(model, x_grid, np.repeat(y_grid, len(x_grid), axis=1)))
    axes.pcolormesh(x_grid[:, 0], y_grid[:, 0], density, cmap="Blues", vmin=0.0, vmax=1.2)


figure = Figure(figsize=(12, 8), layout="constrained")
panels = figure.subplots(4, 2, sharex=True, sharey=True).ravel()
panels[0].plot(X[:, 0], Y[:, 0], "k.", markersize=2)
panels[0].set_title("data")
print("test log-likelihood per point, standardised units")
for axes, (name, model) in zip(panels[1:], models.items(), strict=False):
    draw_density(axes, model)
    score = log_density(model, test[0], test[1][:, 0]).mean()
    axes.set_title(f"{name}: {score:.2f}")
    print(f"{name:12} {score:6.2f}")
panels[-1].set_visible(False)
panels[-3].tick_params(labelbottom=True)
figure.supxlabel("input, standardised")
figure.supylabel("output, standardised")
figure

# %% [markdown]
# A deep GP without latent variables can shift and widen one hump, no more. One latent variable
# makes outlines, and each further layer makes them sharper: the hole of the D, the tongue of the G.
# The gap between G and P is the hardest, for none of the models can jump.
