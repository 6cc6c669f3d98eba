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
# # Handwritten digits, and how sure one may be
#
# Classification with ten classes: the 8 x 8 images that come with scikit-learn, and ten latent
# functions below a likelihood. Only 300 images are for training, so that there is something left to
# be unsure about; all others, 1,497, are for the test.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import gpflow
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from gpflow_dwp import build_deep_wishart_process, fit

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 3 if FAST else 1_500
NUM_DRAWS = 5 if FAST else 50

images, labels = load_digits(return_X_y=True)
train_images, test_images, train_labels, test_labels = train_test_split(
    images, labels, train_size=300, stratify=labels, random_state=0
)
if FAST:
    test_images, test_labels = test_images[:100], test_labels[:100]

# %% [markdown]
# ## The model
#
# Pixels go from 0 to 16; here from -1 to 1. Labels are the numbers 0 to 9, in one column, and are
# not scaled. Two images differ in many of their 64 pixels, so they are far apart:

# %%
X, X_new = train_images / 8.0 - 1.0, test_images / 8.0 - 1.0
Y = train_labels[:, None].astype(float)
distances = np.linalg.norm(X[:, None] - X[None, :], axis=-1)
print(f"median distance of two images: {np.median(distances):.1f}")

# %% [markdown]
# With the default lengthscale of 1 all images would be strangers to each other, so the first
# kernel's starts near that distance. The second kernel acts on the Gram matrix that the Wishart
# layer draws; its variance starts at 10, because probabilities near 0 and 1 need large functions.
#
# Two likelihoods: `Softmax`, whose expectations are taken by Monte Carlo, and `MultiClass`, which
# takes the class with the largest function but for an error rate, and needs no Monte Carlo.


# %%
def train(likelihood):
    """Fit a deep Wishart process of depth 2 with that likelihood."""
    model = build_deep_wishart_process(
        (X, Y),
        2,
        kernel=[
            gpflow.kernels.SquaredExponential(lengthscales=5.0),
            gpflow.kernels.SquaredExponential(variance=10.0),
        ],
        likelihood=likelihood,
        width=10,
        num_inducing=100,
        inducing="kmeans",
    )
    fit(model, (X, Y), NUM_STEPS, progress=False)
    return model


posteriors = {
    "softmax": train(gpflow.likelihoods.Softmax(10)).posterior(NUM_DRAWS, seed=0),
    "robust maximum": train(gpflow.likelihoods.MultiClass(10)).posterior(NUM_DRAWS, seed=0),
}
probabilities = {name: post.predict_y(X_new)[0].numpy() for name, post in posteriors.items()}
logistic = LogisticRegression(max_iter=2_000).fit(X, train_labels)
probabilities["logistic regression"] = logistic.predict_proba(X_new)

# %% [markdown]
# ## Errors, and what they cost
#
# The log-likelihood is the mean logarithm of the probability of the right digit. It punishes those
# who are sure and wrong.

# %%
names = list(probabilities)
rows = np.arange(len(test_labels))
pd.DataFrame(
    {
        "wrong, %": [
            100.0 * np.mean(p.argmax(axis=1) != test_labels) for p in probabilities.values()
        ],
        "log-likelihood": [np.log(p[rows, test_labels]).mean() for p in probabilities.values()],
    },
    index=names,
).round(3)

# %% [markdown]
# ## Calibration
#
# Of all digits that are called with a probability of about 0.8, about 80% should be right. Each
# dot is a tenth of the test images, from the least to the most confident; bars are two standard
# errors. Above the diagonal the model is better than it believes, below it is worse.

# %%
figure = Figure(figsize=(10.0, 3.8), layout="constrained")
for axes, (name, p) in zip(
    figure.subplots(1, 3, sharex=True, sharey=True), probabilities.items(), strict=True
):
    confidence, right = p.max(axis=1), p.argmax(axis=1) == test_labels
    tenths = np.array_split(np.argsort(confidence), 10)
    called = np.array([confidence[tenth].mean() for tenth in tenths])
    observed = np.array([right[tenth].mean() for tenth in tenths])
    sizes = np.array([len(tenth) for tenth in tenths])
    error = 2.0 * np.sqrt(observed * (1.0 - observed) / sizes)
    axes.plot([0, 1], [0, 1], "k--", linewidth=1)
    axes.errorbar(called, observed, error, fmt="o", markersize=4)
    gap = np.sum(sizes * np.abs(called - observed)) / sizes.sum()
    axes.set_title(f"{name}\nmean distance from the diagonal {gap:.3f}", fontsize="medium")
    axes.set(xlabel="probability of the digit called", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
figure.axes[0].set_ylabel("share that is right")
figure

# %% [markdown]
# All three are better than they believe. The softmax is the most modest, which costs it the
# log-likelihood that its few errors should earn; the robust maximum comes nearest to the diagonal,
# and has the best log-likelihood.
#
# ## The least certain images
#
# The ten test images whose digit is called with the least probability by the softmax, with what it
# takes them for. The right digit is green.

# %%
p = probabilities["softmax"]
figure = Figure(figsize=(11.0, 3.0), layout="constrained")
panels = figure.subplots(2, 10, gridspec_kw={"height_ratios": [1.0, 0.8]})
for (above, below), place in zip(panels.T, np.argsort(p.max(axis=1))[:10], strict=True):
    above.imshow(test_images[place].reshape(8, 8), cmap="gray_r")
    above.set_axis_off()
    truth = test_labels[place]
    colours = np.where(np.arange(10) == truth, "C2", "0.6")
    below.bar(np.arange(10), p[place], color=colours)
    below.set(ylim=(0.0, 0.5), xticks=[0, 3, 6, 9], yticks=[])
    below.spines[["top", "right", "left"]].set_visible(False)
panels[1, 0].set(ylabel="probability", yticks=[0.0, 0.5])
figure

# %% [markdown]
# ## Between two digits
#
# What lies between a 4 and a 9? Images are mixed pixel by pixel.

# %%
first, second = (
    test_images[(test_labels == digit) & (p[:, digit] > 0.9 - FAST)][0] for digit in (4, 9)
)
weights = np.linspace(0.0, 1.0, 21)
mixed = (1.0 - weights[:, None]) * first + weights[:, None] * second
between = posteriors["softmax"].predict_y(mixed / 8.0 - 1.0)[0].numpy()
figure = Figure(figsize=(8.0, 4.2), layout="constrained")
grid = figure.add_gridspec(2, 7, height_ratios=[1.0, 2.4])
for column, place in enumerate(np.linspace(0, 20, 7).astype(int)):
    axes = figure.add_subplot(grid[0, column])
    axes.imshow(mixed[place].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    axes.set_axis_off()
axes = figure.add_subplot(grid[1, :])
others = np.delete(between, [4, 9], axis=1).sum(axis=1)
for label, curve in (("4", between[:, 4]), ("9", between[:, 9]), ("any other", others)):
    axes.plot(weights, curve, label=label)
axes.set(xlabel="share of the 9", ylabel="probability", ylim=(0.0, 1.0), xlim=(0.0, 1.0))
axes.legend(frameon=False)
figure

# %% [markdown]
# The one gradually becomes the other. Half way it looks like neither.
