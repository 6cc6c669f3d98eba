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
# # Layers by hand
#
# `build_deep_wishart_process` chooses kernels, widths and starting values. This notebook makes the
# same kind of model from its parts: a kernel and a width of its own for each layer, one of the
# kernels written here, and a training loop of ten lines next to `fit`.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.keras import tf_keras
from gpflow.utilities import print_summary
from matplotlib.figure import Figure

from gpflow_dwp import DeepWishartProcess, build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser, varying_sine
from gpflow_dwp.evaluation import plot_layer_grams, plot_learning_curve, plot_model_1d
from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 2 if FAST else 3_000

X_raw, Y_raw = varying_sine(80, noise=0.05, seed=0)
X, Y = Standardiser.fit(X_raw).transform(X_raw), Standardiser.fit(Y_raw).transform(Y_raw)
data = X, Y

# %% [markdown]
# ## Kernels
#
# The bottom kernel acts on the inputs: any GPflow kernel, here a rough one plus a smooth one. All
# others act on a Gram matrix, so they have to be functions of distances or of inner products. An
# isotropic kernel written for GPflow is one, without another line: the distances are taken from the
# Gram matrix.


# %%
class Cauchy(gpflow.kernels.IsotropicStationary):
    """k(r) = variance / (1 + r²): heavier tails than the squared exponential."""

    def K_r2(self, r2):
        return self.variance / (1.0 + r2)


def kernels():
    """A kernel for each of three layers, bottom first."""
    return [
        gpflow.kernels.Matern52(lengthscales=0.3) + gpflow.kernels.Matern52(lengthscales=2.0),
        Cauchy(),
        gpflow.kernels.SquaredExponential(),
    ]


# %% [markdown]
# ## Layers
#
# All layers share the inducing inputs Z, so all are told how many there are. `df` is ν: a layer of
# few degrees of freedom is noisy and flexible, one of many stays near its kernel. The posterior
# family and `whiten` may differ, too. The output layer has pseudo-targets, which start best on
# what was observed near Z, and as precise as the noise.

# %%
NUM_INDUCING = 20 if FAST else 40
rows = np.linspace(0, len(X) - 1, NUM_INDUCING).astype(int)
NOISE_VARIANCE = 0.02


def make_model():
    """Two Wishart layers below a Gaussian process."""
    bottom, middle, top = kernels()
    layers = [
        WishartLayer(bottom, df=3, num_inducing=NUM_INDUCING, posterior="AB", seed=0),
        WishartLayer(middle, df=10, num_inducing=NUM_INDUCING, posterior="A", whiten=True, seed=1),
        GlobalInducingGPLayer(
            top, num_outputs=1, pseudo_targets=Y[rows], precision=1.0 / NOISE_VARIANCE
        ),
    ]
    likelihood = gpflow.likelihoods.Gaussian(NOISE_VARIANCE)
    return DeepWishartProcess(layers, likelihood, X[rows], num_data=len(X), num_samples=2)


model = make_model()
model

# %% [markdown]
# It is a GPflow model. Parameters can be held fixed, and given priors, whose log density joins the
# training loss.

# %%
gpflow.set_trainable(model.layers[2].kernel.variance, False)
to_float = gpflow.utilities.to_default_float
model.layers[0].kernel.kernels[0].lengthscales.prior = tfp.distributions.LogNormal(
    to_float(-1.0), to_float(1.0)
)
print_summary(model.layers[0].kernel)

# %% [markdown]
# ## A loop of your own
#
# `training_loss_closure` gives the negative bound, with fresh draws each time that it is called.
# What a GPflow user writes for `SVGP` works here. The optimiser is Keras 2's, which GPflow keeps
# under `gpflow.keras.tf_keras`.

# %%
loss = model.training_loss_closure(data)
rate = tf_keras.optimizers.schedules.CosineDecay(1e-2, NUM_STEPS)
optimizer = tf_keras.optimizers.Adam(rate)


@tf.function
def step():
    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return value


bounds = np.array([-step().numpy() for _ in range(NUM_STEPS)])

# %% [markdown]
# `fit` does the same and more: the weight of the log ratios grows in the first steps (annealing),
# the loop itself is compiled, and a bound that is not finite ends it with the layer's name.

# %%
same_model = make_model()
history = fit(same_model, data, NUM_STEPS, progress=False)

figure = Figure(figsize=(9.0, 3.4), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
steps = np.arange(1, NUM_STEPS + 1)
curves = {"loop by hand": bounds / len(X), "fit": history.elbo_per_datum}
for axes, (name, curve) in zip(panels, curves.items(), strict=True):
    plot_learning_curve(steps, curve, axes, label="ELBO per datum (nats)")
    axes.set_title(f"{name}: {curve[-200:].mean():.2f} at the end", fontsize="medium")
    axes.set_ylim(-2.0, 1.0)
panels[1].set_ylabel("")
figure

# %% [markdown]
# In this run `fit`, which also starts with a larger rate, ends higher.
#
# ## What came out

# %%
axes = plot_model_1d(same_model, data)
axes.figure

# %% [markdown]
# The posterior draws the points on the left together, where the function is slow, and keeps those
# on the right apart, where it is fast. The prior with the same kernels knows no left and right.

# %%
axes = plot_layer_grams(same_model)
axes[0].figure

# %% [markdown]
# ## A kernel of learned features
#
# The bottom kernel may act on what a network makes of the inputs: a deep kernel, whose weights are
# trained with everything else if they are `gpflow.Parameter`s. Here the function depends on one
# direction in six inputs.


# %%
class Network(tf.Module):
    """Features of inputs: products with weights, and tanh between them."""

    def __init__(self, sizes, seed=0):
        super().__init__()
        self.sizes = sizes
        rng = np.random.default_rng(seed)
        self.weights = [
            gpflow.Parameter(rng.normal(size=shape) / np.sqrt(shape[0]))
            for shape in zip(sizes, sizes[1:], strict=False)
        ]

    def __call__(self, X):
        for weights in self.weights[:-1]:
            X = tf.tanh(X @ weights)
        return X @ self.weights[-1]


class DeepKernel(gpflow.kernels.Kernel):
    """A kernel of the features that a network makes."""

    def __init__(self, network, kernel):
        super().__init__()
        self.network, self.kernel = network, kernel

    def K(self, X, X2=None):
        return self.kernel(self.network(X), None if X2 is None else self.network(X2))

    def K_diag(self, X):
        return self.kernel(self.network(X), full_cov=False)


rng = np.random.default_rng(0)
direction = rng.normal(size=6)
direction /= np.linalg.norm(direction)
X_six = rng.normal(size=(600, 6))
f_six = np.sqrt(2.0) * np.sin(3.0 * X_six @ direction)[:, None]
rows_six = X_six[:100], f_six[:100] + 0.07 * rng.normal(size=(100, 1))

bottoms = {
    "a lengthscale for each input": "SquaredExponential",
    "one linear feature": DeepKernel(Network([6, 1]), gpflow.kernels.SquaredExponential()),
    "a network": DeepKernel(Network([6, 32, 32, 2]), gpflow.kernels.SquaredExponential()),
}
for name, bottom in bottoms.items():
    deep = build_deep_wishart_process(
        rows_six, depth=2, kernel=[bottom, "SquaredExponential"], num_inducing=NUM_INDUCING
    )
    history = fit(deep, rows_six, 2 if FAST else 1_000, progress=False)
    errors = [
        np.sqrt(np.mean((deep.predict_f(X_six[part])[0] - f_six[part]) ** 2))
        for part in (slice(100), slice(100, None))
    ]
    print(
        f"{name}: bound {history.elbo_per_datum[-50:].mean():.2f} nats a row, "
        f"error on training rows {errors[0]:.3f}, on others {errors[1]:.3f}"
    )

# %% [markdown]
# One feature has six weights, which are found: other rows are predicted better than with
# lengthscales. The network has 1,280, and the bound, where parameters of kernels cost nothing, is
# the highest where training rows are fitted to the last digit and all others are lost (Ober,
# Rasmussen and van der Wilk, "The promises and pitfalls of deep kernel learning", 2021). So give a
# kernel few weights, and leave the rest to hidden layers, whose features have a posterior.

# %% [markdown]
# ## What is refused
#
# A kernel that no Gram matrix can serve is refused when the model is made, and the message says
# what to use.

# %%
from gpflow_dwp.exceptions import UnsupportedKernelError

layers = [
    WishartLayer(gpflow.kernels.Matern32(), df=3, num_inducing=NUM_INDUCING),
    GlobalInducingGPLayer(
        gpflow.kernels.Periodic(gpflow.kernels.SquaredExponential()), 1, pseudo_targets=Y[rows]
    ),
]
try:
    DeepWishartProcess(layers, gpflow.likelihoods.Gaussian(), X[rows], num_data=len(X))
except UnsupportedKernelError as error:
    print(error)
