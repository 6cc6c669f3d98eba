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
# # Matrix-Gaussian networks on two toy problems, and digits
#
# A neural network whose weight matrices have matrix-variate Gaussian posteriors, with pseudo-data
# in every layer: section 4.3 and appendix B of "Structured and Efficient Variational Deep
# Learning with Matrix Gaussian Posteriors" (Louizos and Welling, 2016).

# %% tags=["hide-input"]
# %matplotlib inline
import os

import gpflow
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from gpflow_dwp import build_matrix_gaussian_network, fit

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 10 if FAST else 5_000
NUM_DRAWS = 10 if FAST else 200


def draw(axes, model, X, Y, grid, deviations) -> None:
    """Draw the data, the mean, and bands of so many standard deviations of the predictive."""
    mean, variance = (
        np.asarray(part)[:, 0] for part in model.predict_y(grid, num_samples=NUM_DRAWS)
    )
    for number in deviations:
        reach = number * np.sqrt(variance)
        axes.fill_between(
            grid[:, 0],
            mean - reach,
            mean + reach,
            color="0.5",
            alpha=0.3,
            lw=0,
            label=f"± {number} standard deviation{'s' if number > 1 else ''}",
        )
    axes.plot(grid[:, 0], mean, color="C0", label="mean")
    axes.plot(X[:, 0], Y[:, 0], "k.", label="data")


def known_noise(variance: float) -> gpflow.likelihoods.Gaussian:
    """Return a Gaussian likelihood whose variance is not trained."""
    likelihood = gpflow.likelihoods.Gaussian(variance)
    gpflow.set_trainable(likelihood, False)
    return likelihood


# %% [markdown]
# ## A cubic function
#
# Twenty inputs from U[-4, 4], $y = x^3 + \epsilon$ with $\epsilon \sim N(0, 9)$; one hidden layer
# of 100 units, two pseudo-data pairs in the first layer and four in the second. The noise variance
# is either known or has the paper's Gamma prior and posterior; the paper does not say which its
# figure shows.

# %%
rng = np.random.default_rng(0)
X = rng.uniform(-4.0, 4.0, size=(20, 1))
Y = X**3 + 3.0 * rng.normal(size=X.shape)
center, scale = X.mean(), X.std()
inputs = (X - center) / scale
grid = np.linspace(-6.0, 6.0, 200)[:, None]
figure = Figure(figsize=(10, 4))
for axes, (title, likelihood) in zip(
    figure.subplots(1, 2, sharey=True),
    {"noise known": known_noise(9.0), "noise learned": None}.items(),
    strict=True,
):
    model = build_matrix_gaussian_network(
        (inputs, Y),
        width=100,
        num_pseudo_data=(2, 4),
        largest_dropout=0.2,
        likelihood=likelihood,
        num_samples=2,
    )
    fit(model, (inputs, Y), NUM_STEPS, progress=False)
    draw(axes, model, inputs, Y, (grid - center) / scale, (3,))
    axes.plot((grid[:, 0] - center) / scale, grid[:, 0] ** 3, "k--", lw=1, label="cubic")
    axes.set(title=title, xlabel="x, standardised")
figure.axes[0].set_ylabel("y")
figure.axes[0].legend(frameon=False)
figure

# %% [markdown]
# The mean follows the cubic where there are data. Beyond them it goes on straight and the band
# opens, but the cubic soon leaves it. The noise that is learned has a standard deviation of 3.8,
# where that of the data is 3, and changes little else.
#
# ## A function with a gap
#
# Twelve inputs from U[0, 0.6] and eight from U[0.8, 1], $y = z + \sin 4z + \sin 13z$ of
# $z = x + \epsilon$, $\epsilon \sim N(0, 0.0009)$; two hidden layers of 50 units with three
# nonlinearities. The noise that is known here is the variance which $\epsilon$ gives y, to first
# order, on average over [0, 1].

# %%
X = np.concatenate([rng.uniform(0.0, 0.6, 12), rng.uniform(0.8, 1.0, 8)])[:, None]
z = X + 0.03 * rng.normal(size=X.shape)
Y = z + np.sin(4.0 * z) + np.sin(13.0 * z)
center, scale = X.mean(), X.std()
inputs = (X - center) / scale
grid = np.linspace(-0.2, 1.2, 200)[:, None]
places = np.linspace(0.0, 1.0, 1_001)
slope = 1.0 + 4.0 * np.cos(4.0 * places) + 13.0 * np.cos(13.0 * places)
figure = Figure(figsize=(12, 3.6))
for axes, activation in zip(
    figure.subplots(1, 3, sharey=True), ("relu", "cos", "tanh"), strict=True
):
    model = build_matrix_gaussian_network(
        (inputs, Y),
        3,
        num_pseudo_data=(2, 4, 4),
        largest_dropout=0.2,
        activation=activation,
        likelihood=known_noise(0.0009 * np.mean(slope**2)),
        num_samples=2,
    )
    fit(model, (inputs, Y), NUM_STEPS, progress=False)
    draw(axes, model, inputs, Y, (grid - center) / scale, (1, 2))
    axes.plot(
        (grid[:, 0] - center) / scale,
        grid[:, 0] + np.sin(4.0 * grid[:, 0]) + np.sin(13.0 * grid[:, 0]),
        "k--",
        lw=1,
        label="without noise",
    )
    axes.set(title=activation, xlabel="x, standardised")
figure.axes[0].set_ylabel("y")
figure.axes[0].legend(frameon=False, fontsize="small", loc=(0.25, 0.01))
figure.tight_layout()
figure

# %% [markdown]
# Cosines follow the wiggles, hyperbolic tangents see less of them, and rectified units hardly any.
# They differ, as in the paper's figure, in what they think of the gap and of the outside.
#
# ## Handwritten digits
#
# Classification (section 4.2) on the 8 x 8 images that come with scikit-learn, as 64 numbers in no
# order: two hidden layers of 50 units, a softmax likelihood, weights with the prior
# $MN(0, I, I)$, at most 0.25 for the dropout rates, minibatches.

# %%
images, labels = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(images))
train, test = rows[:1200], rows[1200:]
X, Y = images / 16.0, labels[:, None]
model = build_matrix_gaussian_network(
    (X[train], Y[train]),
    3,
    num_pseudo_data=20,
    largest_dropout=0.25,
    learn_precision=False,
    likelihood=gpflow.likelihoods.Softmax(10),
    num_samples=1,
)
fit(
    model,
    (X[train], Y[train]),
    3 * NUM_STEPS,
    batch_size=100,
    protocol="networks",
    progress=False,
)
probabilities = np.asarray(model.predict_y(X[test], num_samples=5 if FAST else None)[0])
logistic = LogisticRegression(max_iter=1_000).fit(X[train], labels[train])
for name, predicted in (
    ("matrix-Gaussian network", probabilities),
    ("logistic regression", logistic.predict_proba(X[test])),
):
    error = np.mean(predicted.argmax(axis=1) != labels[test])
    log_likelihood = np.log(predicted[np.arange(len(test)), labels[test]]).mean()
    print(f"{name}: {100 * error:.1f}% wrong, log-likelihood {log_likelihood:.3f} per image")

# %% [markdown]
# The least certain of the test images, with the two most probable digits; a wrong first choice is
# red.

# %%
figure = Figure(figsize=(10, 2.2))
confidence = probabilities.max(axis=1)
for axes, place in zip(figure.subplots(1, 8), np.argsort(confidence)[:8], strict=True):
    axes.imshow(images[test][place].reshape(8, 8), cmap="gray_r")
    first, second = np.argsort(probabilities[place])[:-3:-1]
    axes.set_title(
        f"{first}: {probabilities[place, first]:.2f}\n{second}: {probabilities[place, second]:.2f}",
        color="black" if first == labels[test][place] else "C3",
    )
    axes.set_axis_off()
figure
