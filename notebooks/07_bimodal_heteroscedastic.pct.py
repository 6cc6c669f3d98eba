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
# # Two data sets that have no function in them
#
# One is bimodal: two branches part half way, and each point lies on one of them by chance. The
# other is heteroscedastic: noise grows from left to right. In both the density is known, so that
# models can be compared with it. The models are those of the notebook on letters: LV stands for a
# latent variable of each point, GP for a layer of Gaussian processes, DWP for a deep Wishart
# process with two layers (Salimbeni, Dutordoir, Hensman and Deisenroth, 2019).

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import norm
from tabulate import tabulate

from gpflow_dwp import Estimator, build_deep_wishart_process, fit
from gpflow_dwp.evaluation import mixture_log_density
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 4 if FAST else 5_000
NUM_DRAWS = 10 if FAST else 1_000
NUM_DATA = 40 if FAST else 500
IMPORTANCE_SAMPLES = 2 if FAST else 5
NUM_INDUCING = 8 if FAST else 30

# %% [markdown]
# ## The data, and their densities
#
# Branches and noise are such that inputs and outputs need no standardising.


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


# %% [markdown]
# ## Six models of each
#
# With latent variables the bound is importance-weighted, with five draws of each.

# %%
NAMES = ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP")
if FAST:
    NAMES = NAMES[::3] + NAMES[-1:]


def train_model(name, data):
    """Build and fit the model of that name."""
    if name == "LV-DWP":
        settings = {"posterior": "A", "num_inducing": NUM_INDUCING, "latent_dim": 1}
        model = build_deep_wishart_process(data, 2, **settings)
    else:
        model = build_latent_variable_deep_gp(data, name, num_inducing=NUM_INDUCING)
    fit(
        model,
        data,
        NUM_STEPS,
        batch_size=256,
        estimator=Estimator(IMPORTANCE_SAMPLES if "LV" in name else 1),
        progress=False,
    )
    return model


def log_density(model, x, y):
    """Log density of y [..., N] at x [N, 1]."""
    moments = model.posterior(NUM_DRAWS, seed=0).predict_y_components(x)
    means, variances = (moment.numpy()[..., 0] for moment in moments)
    return mixture_log_density(y, means, variances)


problems = (Bimodal(), Heteroscedastic())
models = {
    problem.title: {name: train_model(name, draw_data(problem, NUM_DATA, 0)) for name in NAMES}
    for problem in problems
}

# %% [markdown]
# ## Densities

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
panels = figure.subplots(2, 1 + len(NAMES), sharex=True, sharey=True)
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
# ## Test log-likelihood per point
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
