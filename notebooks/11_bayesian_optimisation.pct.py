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
# # Bayesian optimisation
#
# To find the lowest value of a function that is expensive to evaluate, Bayesian optimisation fits a
# model to what was seen so far and asks it where to look next. `BayesianOptimizationModel` gives a
# deep Wishart process the methods that libraries for this call, with the shapes of
# [Trieste](https://secondmind-labs.github.io/trieste/): `predict`, `predict_joint`, `sample`,
# `update`, `optimize`, `trajectory_sampler`. Here a short loop of our own drives it, by **Thompson
# sampling**: draw a function from the posterior, and look where that function is lowest.

# %% tags=["hide-input"]
# %matplotlib inline
import os
from typing import NamedTuple

import gpflow
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from gpflow_dwp import DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.serving import BayesianOptimizationModel

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 20 if FAST else 1_500
NUM_ROUNDS = 1 if FAST else 6
tf.random.set_seed(0)  # trajectories are drawn from TensorFlow's generator

# %% [markdown]
# ## A function with two scales
#
# This one waves quickly on the left and is almost straight on the right (Xiong et al., 2007). Its
# lowest value on [0, 1] is in the quick part, beside another that is almost as low.


# %%
def objective(x: np.ndarray) -> np.ndarray:
    """The function, at points [N, 1]."""
    y = x - 0.9
    return np.sin(30.0 * y**4) * np.cos(2.0 * y) + 0.5 * y


candidates = np.linspace(0.0, 1.0, 50 if FAST else 501)[:, None]
truth = objective(candidates)
best = candidates[truth.argmin()]


class Observed(NamedTuple):
    """All that was seen: what libraries call a dataset."""

    query_points: np.ndarray
    observations: np.ndarray


def observe(x: np.ndarray, seen: Observed | None = None) -> Observed:
    """Evaluate the function and add what it says to what was seen."""
    new = Observed(x, objective(x))
    if seen is None:
        return new
    return Observed(*(np.concatenate(parts) for parts in zip(seen, new, strict=True)))


# %% [markdown]
# ## The model
#
# It takes a builder, since every round builds and trains a model for all data seen so far. The
# function has no noise: without saying so, the model would take the quick waves for it.

# %%
seen = observe(np.linspace(0.05, 0.95, 6)[:, None])


def build(data: tuple[np.ndarray, np.ndarray]) -> DeepWishartProcess:
    """A deep Wishart process of depth 2, with next to no noise."""
    likelihood = gpflow.likelihoods.Gaussian(1e-4)
    gpflow.set_trainable(likelihood, False)
    return build_deep_wishart_process(
        data, depth=2, width=3, num_inducing=30, likelihood=likelihood
    )


model = BayesianOptimizationModel(build, seen, num_steps=NUM_STEPS)
history = model.optimize(seen)

# %% [markdown]
# ## Rounds
#
# Each round draws three functions. A trajectory takes `[N, B, D]`: B functions, each at N points of
# its own, and says the same at a point however often it is asked.


# %%
def lowest_of_each(functions: np.ndarray) -> np.ndarray:
    """Where functions [N, B, 1] on the candidates are lowest, [B, 1]."""
    return candidates[functions[..., 0].argmin(axis=0)]


rounds = []
for _ in range(NUM_ROUNDS):
    trajectory = model.trajectory_sampler().get_trajectory()
    functions = trajectory(np.repeat(candidates[:, None, :], 3, axis=1)).numpy()
    chosen = lowest_of_each(functions)
    rounds.append((seen, *model.predict(candidates), functions, chosen))
    seen = observe(chosen, seen)
    model.optimize(seen)

# %% [markdown]
# The rounds, left to right and top to bottom: what was seen (dots), the mean and two standard
# deviations, the three functions drawn, and what the truth is where they are lowest (triangles).
# The truth is dotted, with a star where it is lowest.

# %%
figure, grid = plt.subplots(2, 3, figsize=(11, 5), sharex=True, sharey=True, layout="constrained")
for index, (axes, (data, mean, variance, functions, chosen)) in enumerate(
    zip(grid.flat, rounds, strict=False), start=1
):
    x, middle, spread = candidates[:, 0], mean[:, 0], 2.0 * np.sqrt(variance[:, 0])
    axes.fill_between(x, middle - spread, middle + spread, color="C0", alpha=0.2, lw=0)
    axes.plot(x, middle, "C0")
    axes.plot(x, functions[..., 0], "C1", lw=0.8)
    axes.plot(x, truth, "k:", lw=1)
    axes.plot(best, truth.min(), "k*", ms=9)
    axes.plot(*data, "k.")
    axes.plot(chosen, objective(chosen), "C3^")
    axes.set_title(f"round {index}")
figure.supxlabel("x")
_ = figure.supylabel("f(x)")

# %% [markdown]
# ## What was found

# %%
lowest = np.minimum.accumulate(seen.observations[:, 0])
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.step(np.arange(1, len(lowest) + 1), lowest, where="post")
axes.axhline(truth.min(), color="k", ls=":", label="lowest value of the function")
axes.set(xlabel="evaluations", ylabel="lowest value seen")
_ = axes.legend()

# %%
at = seen.query_points[seen.observations.argmin(), 0]
print(f"lowest value seen: {lowest[-1]:.4f} at x = {at:.3f}")
print(f"lowest value:      {truth.min():.4f} at x = {best[0]:.3f}")

# %% [markdown]
# With Trieste the same model goes straight into its loop, for any acquisition function that needs
# only these methods:
#
# ```python
# optimizer = trieste.bayesian_optimizer.BayesianOptimizer(observer, search_space)
# result = optimizer.optimize(10, initial_data, model)
# ```
