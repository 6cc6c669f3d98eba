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
# # A first deep Wishart process
#
# A deep Gaussian process passes random features from layer to layer. A deep Wishart process has the
# same prior, but passes only their inner products: each hidden layer draws a **Gram matrix** from a
# Wishart distribution around a kernel of the Gram matrix below. Features that differ by a rotation
# have one Gram matrix, so the posterior does not have to choose between them.
#
# This notebook trains one on a function of one variable and looks inside.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser, step_function
from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    plot_functions_1d,
    plot_gram_matrices,
    plot_learning_curve,
)

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 3 if FAST else 4_000

# %% [markdown]
# ## Data
#
# A step. A Gaussian process with a stationary kernel has one lengthscale: it can follow the step or
# be flat beside it, but not both. Everything is standardised, as the model's defaults expect.

# %%
X_raw, Y_raw = step_function(60, noise=0.05, seed=1)
inputs, target = Standardiser.fit(X_raw), Standardiser.fit(Y_raw)
X, Y = inputs.transform(X_raw), target.transform(Y_raw)
grid_raw = np.linspace(-1.3, 1.3, 40 if FAST else 200)[:, None]
grid = inputs.transform(grid_raw)

# %% [markdown]
# ## Build and train
#
# Depth 3 means two Wishart layers below a Gaussian process. `width` is the degrees of freedom of
# each: the width of the layers of the deep Gaussian process with the same prior.

# %%
model = build_deep_wishart_process((X, Y), depth=3, width=5, num_inducing=30, seed=0)
history = fit(model, (X, Y), num_steps=NUM_STEPS, progress=False)
axes = plot_learning_curve(
    np.arange(1, history.num_steps + 1), history.elbo_per_datum, label="ELBO per datum (nats)"
)
axes.figure

# %% [markdown]
# ## Predictions and sampled functions
#
# The prediction is a mixture: one Gaussian for each joint draw of all Gram matrices. `posterior`
# makes the draws once; every prediction from it uses the same ones. `PredictiveDistribution` has
# quantiles of the mixture, in raw units. `predict_f_samples` draws coherent functions.

# %%
posterior = model.posterior(20 if FAST else 100, seed=0)
distribution = PredictiveDistribution.of(posterior, grid, target)
functions = target.inverse_transform(model.predict_f_samples(grid, 5, seed=1))[..., 0]

axes = plot_functions_1d(
    X_raw,
    Y_raw,
    grid_raw,
    functions,
    distribution.mean(),
    *distribution.quantile([0.025, 0.975]),
)
axes.set_title("deep Wishart process, depth 3")
axes.figure

# %% [markdown]
# The same data with GPflow's `GPR`, for comparison. It stays wavy where the data are flat.

# %%
gpr = gpflow.models.GPR((X, Y), gpflow.kernels.SquaredExponential(), noise_variance=0.1)
gpflow.optimizers.Scipy().minimize(gpr.training_loss, gpr.trainable_variables)
mean, variance = (moment.numpy()[:, 0] for moment in gpr.predict_y(grid))
tf.random.set_seed(0)
functions = gpr.predict_f_samples(grid, 5).numpy()[..., 0]

axes = plot_functions_1d(
    X_raw,
    Y_raw,
    grid_raw,
    *(
        target.inverse_transform(curve[..., None])[..., 0]
        for curve in (
            functions,
            mean,
            mean - 1.96 * np.sqrt(variance),
            mean + 1.96 * np.sqrt(variance),
        )
    ),
)
axes.set_title("Gaussian process")
axes.figure

# %%
print(f"log evidence, Gaussian process:            {float(gpr.log_marginal_likelihood()):8.2f}")
print(f"bound on it, deep Wishart process:         {history.elbo[-100:].mean():8.2f}")

# %% [markdown]
# ## What the layers have learned
#
# The Gram matrices over x, averaged over draws and divided by the mean of their diagonal, beside
# the kernel of the inputs. There, points are similar to their neighbours. Layer by layer, the two
# sides of the step become two blocks: within each, points are alike, and across the step they are
# not.

# %%
kernel = model.layers[0].kernel(grid).numpy()
grams = [kernel, *(np.mean(gram, axis=0) for gram in posterior.gram_matrices(grid))]
grams = [gram / gram.diagonal().mean() for gram in grams]
titles = ["kernel of the inputs", *(f"layer {index}" for index in range(1, len(grams)))]
axes = plot_gram_matrices(grams, titles, x=grid_raw[:, 0])
axes[0].figure

# %% [markdown]
# ## The layers' share of the bound
#
# Each layer pays for what it moves away from its prior: minus its log ratio is an estimate of its
# Kullback-Leibler divergence, in nats.

# %%
for index, log_ratio in enumerate(history.log_ratios[-100:].mean(axis=0), start=1):
    print(f"layer {index}: {-log_ratio:.1f} nats")
