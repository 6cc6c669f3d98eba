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
# # Looking at a model
#
# What a trained deep Wishart process is made of, what it learned, and whether its uncertainty can
# be believed: `model_summary` and the plots of `gpflow_dwp.evaluation`.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import matplotlib.pyplot as plt
import numpy as np
from gpflow.kernels import SquaredExponential
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    plot_calibration,
    plot_functions_1d,
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
    plot_model_1d,
    plot_predictions,
)

FAST = bool(os.environ.get("GPFLOW_DWP_FAST"))
NUM_STEPS = 10 if FAST else 2_000
SETTINGS = {"num_steps": 10, "num_inducing": 20} if FAST else {}

# %% [markdown]
# ## A function with a step
#
# One input, sixty points, and a jump that a stationary kernel cannot follow without wiggling
# elsewhere.

# %%
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-2.0, 2.0, (60, 1)), axis=0)
Y = np.sign(X) * (1.0 + 0.3 * np.sin(4.0 * X)) + 0.1 * rng.standard_normal(X.shape)
model = build_deep_wishart_process((X, Y), depth=3, width=5, num_inducing=30)
history = fit(model, (X, Y), NUM_STEPS, progress=False)

# %% [markdown]
# `model_summary` shows a model's parts, and what each layer's posterior costs, its divergence from
# the prior in nats; a layer that costs nothing does nothing.

# %%
from gpflow_dwp.models import model_summary

print(model_summary(model))

# %%
axes = plot_model_1d(model, (X, Y))
axes.figure

# %% [markdown]
# `plot_functions_1d` draws the same picture from the numbers of any model; here those of a Gaussian
# process of one layer, with intervals of the function. One lengthscale has to serve for the jump
# and for what is left and right of it.

# %%
shallow = GaussianProcessRegressor(RBF() + WhiteKernel(0.01), random_state=0).fit(X, Y[:, 0])
grid = np.linspace(-2.4, 2.4, 200)[:, None]
shallow.kernel_ = shallow.kernel_.k1  # predictions of the function, without the noise
mean, std = shallow.predict(grid, return_std=True)
draws = shallow.sample_y(grid, 8, random_state=0).T
axes = plot_functions_1d(X, Y, grid, draws, mean, mean - 1.96 * std, mean + 1.96 * std)
axes.figure

# %% [markdown]
# The bound over training, and each layer's part in it.

# %%
steps = np.arange(1, history.num_steps + 1)
axes = plot_learning_curve(steps, history.elbo_per_datum, label="ELBO per datum (nats)")
axes.figure

# %%
axes = plot_layer_divergences(history.log_ratios)
axes.figure

# %% [markdown]
# ### What representation was learned
#
# Each hidden layer's Gram matrix of the inducing points, over their inputs. Below is the prior with
# the same kernels: points are alike if they are near. The posterior says something else: points are
# alike if they are on the same side of the step.

# %%
axes = plot_layer_grams(model)
axes[0].figure

# %% [markdown]
# `plot_gram_matrices` takes matrices of any origin: the kernel of the inputs themselves, in order,
# beside products of the targets, which is what a layer that knew them would say.

# %%
axes = plot_gram_matrices(
    [SquaredExponential()(X).numpy(), Y @ Y.T], ["kernel of the inputs", "targets"], x=X[:, 0]
)
axes[0].figure

# %% [markdown]
# ## A table with ten inputs
#
# Disease progression of 442 diabetes patients, by the scikit-learn estimator, which scales the
# data and predicts in raw units. A kernel that is named has a lengthscale for each input.

# %%
table = load_diabetes(scaled=False)
inputs, target = table.data, table.target
rows = rng.permutation(len(inputs))
train, test = rows[:350], rows[350:]
regressor = DeepWishartRegressor(kernel="SquaredExponential", random_state=0, **SETTINGS)
regressor.fit(inputs[train], target[train])
lower, upper = regressor.predict_interval(inputs[test])
axes = plot_predictions(
    target[test], regressor.predict(inputs[test]), lower, upper, target="progression"
)
inside = (lower <= target[test]) & (target[test] <= upper)
print(f"in the 95% intervals: {inside.mean():.0%}")
axes.figure

# %% [markdown]
# ### Can the uncertainty be believed?
#
# The predictive distribution function at what was observed is uniform if the model is calibrated.

# %%
standardised = regressor.input_standardiser_.transform(inputs[test])
distribution = PredictiveDistribution.of(
    regressor.model_.posterior(seed=0), standardised, regressor.output_standardiser_
)
pit = distribution.cdf(target[test, None])[:, 0]
axes = plot_calibration(pit)
axes.figure

# %% [markdown]
# Of labels it is the share that is right, among rows of which the model is about as sure, by
# scikit-learn. Here the question is whether the progression is above 140.

# %%
high = target > 140.0
classifier = DeepWishartClassifier(depth=1, random_state=0, **SETTINGS)
classifier.fit(inputs[train], high[train])
display = CalibrationDisplay.from_estimator(
    classifier, inputs[test], high[test], n_bins=6, strategy="quantile"
)
display.figure_

# %% [markdown]
# ### Which inputs matter, and how
#
# By scikit-learn: how much worse predictions get where rows exchange an input, and how they depend
# on one with the others as they are in the data (an average over rows; thin lines are rows).

# %%
found = permutation_importance(
    regressor, inputs[test], target[test], n_repeats=1 if FAST else 5, random_state=0
)
for place in np.argsort(-found.importances_mean):
    print(f"{table.feature_names[place]:4} {found.importances_mean[place]:6.3f} of R²")

# %%
bmi = list(table.feature_names).index("bmi")
display = PartialDependenceDisplay.from_estimator(
    regressor, inputs[train], [bmi], kind="both", feature_names=table.feature_names, subsample=30
)
display.figure_

# %% [markdown]
# ## The effect of depth
#
# The bound per datum on the step function for one, two and three layers, in three runs each.

# %%
depths = [1, 2] if FAST else [1, 2, 3]
bounds = []
for depth in depths:
    of_depth = []
    for seed in range(1 if FAST else 3):
        deep = build_deep_wishart_process((X, Y), depth, width=5, num_inducing=30, seed=seed)
        run = fit(deep, (X, Y), NUM_STEPS // 2, seed=seed, progress=False)
        of_depth.append(run.elbo_per_datum[-100:].mean())
    bounds.append(of_depth)
figure, axes = plt.subplots(figsize=(5.2, 3.6))
axes.errorbar(depths, np.mean(bounds, axis=1), yerr=np.std(bounds, axis=1), marker="o", capsize=3)
axes.set(xticks=depths, xlabel="depth (layers)", ylabel="ELBO per datum (nats)")
figure
