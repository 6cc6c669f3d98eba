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
# # From a deep GP to a deep Wishart process
#
# What the models of this package are, in pictures. Nothing is trained here.

# %% tags=["hide-input"]
# %matplotlib inline
import gpflow
import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure

from gpflow_dwp.distributions import GeneralisedBartlett, SingularWishart
from gpflow_dwp.evaluation import plot_gram_matrices
from gpflow_dwp.kernels import gram_K
from gpflow_dwp.layers import WishartLayer

x = np.linspace(-1.0, 1.0, 60)[:, None]
JITTER = 1e-8 * np.eye(len(x))

# %% [markdown]
# ## Features go, inner products stay
#
# A deep Gaussian process passes features from layer to layer: layer ℓ draws ν functions of the
# features below, $f_j \sim \mathcal N(0, K(F_{\ell-1}))$, and their values are the next features
# $F_\ell$, an `[N, ν]` matrix. If the kernel depends on its inputs through inner products (and so
# also through distances), then all that the next layer sees of $F_\ell$ is the Gram matrix
# $G_\ell = F_\ell F_\ell^\top / ν$.
#
# Here are two features of 60 inputs on a line (dark to bright), and the same two rotated: very
# different numbers, one Gram matrix.

# %%
rng = np.random.default_rng(1)
kernel = gpflow.kernels.SquaredExponential(lengthscales=0.4)
covariance = kernel(x).numpy()
features = np.linalg.cholesky(covariance + JITTER) @ rng.standard_normal((len(x), 2))
figure = Figure(figsize=(9.0, 5.6), layout="constrained")
panels = figure.subplots(2, 3)
rotated = []
for axes, degrees in zip(panels[0], (0, 75, 160), strict=True):
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    rotated.append(features @ np.array([[cos, sin], [-sin, cos]]))
    axes.plot(*rotated[-1].T, color="0.7", linewidth=1, zorder=0)
    axes.scatter(*rotated[-1].T, c=x[:, 0], s=14)
    reach = 1.1 * np.linalg.norm(features, axis=1).max()
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set(title=f"F rotated by {degrees}°", xlabel="feature 1", ylabel="feature 2")
plot_gram_matrices([f @ f.T / 2.0 for f in rotated], ["F Fᵀ / 2"] * 3, list(panels[1]))
figure

# %% [markdown]
# With Gaussian columns,
#
# $$G_\ell \sim \mathcal W(K(G_{\ell-1})/ν, ν):$$
#
# a Wishart distribution, singular where there are fewer features than points. A stack of these is a
# **deep Wishart process**. It has the prior of the deep Gaussian process and no features at all.
#
# What is gained is the posterior. Any rotation of $F$ leaves $G$ as it was, so the true posterior
# over features is as symmetric as a sphere, and a Gaussian approximation has to choose a side:
# [see it happen](13_rotations_and_posteriors.pct.py). Over Gram matrices there is nothing to
# choose.
#
# ## The degrees of freedom
#
# ν is how wide the layer of the deep Gaussian process would be. Each draw of G lies around the
# kernel's matrix K: far from it where ν is small, near it where ν is large. An infinitely wide
# layer passes K on, and learns no representation.

# %%
draws = [
    SingularWishart(df, np.linalg.cholesky(covariance + JITTER) / np.sqrt(df))
    .sample(seed=3)
    .numpy()
    for df in (2, 20, 500)
]
axes = plot_gram_matrices([covariance, *draws], ["K", "G, ν = 2", "G, ν = 20", "G, ν = 500"])
axes[0].figure

# %% [markdown]
# ## Depth
#
# Three layers, one draw (ν = 3): each layer's Gram matrix becomes a kernel matrix, around which the
# next one is drawn. Distances that one layer stretches stay stretched above it.


# %%
def draw_grams(depth, df, seed):
    """Gram matrices drawn from the prior, one for each hidden layer, and the top kernel matrix."""
    above, grams = covariance, []
    for layer in range(depth - 1):
        scale_tril = np.linalg.cholesky(above + 1e-6 * np.eye(len(x))) / np.sqrt(df)
        gram = SingularWishart(df, scale_tril).sample(seed=[seed, layer])
        above = gram_K(gpflow.kernels.SquaredExponential(), gram[None])[0].numpy()
        grams.append(gram.numpy())
    return grams, above


grams, top = draw_grams(4, 3, 2)
axes = plot_gram_matrices([covariance, *grams], ["K of the inputs", "G₁", "G₂", "G₃"])
axes[0].figure

# %% [markdown]
# At the top is a Gaussian process with covariance $K(G_L)$. Three functions from each depth: with
# one layer they are equally smooth everywhere; with eight they are flat in some places and have
# kinks in others.

# %%
figure = Figure(figsize=(11.0, 2.8), layout="constrained")
for axes, depth in zip(figure.subplots(1, 4, sharey=True), (1, 2, 4, 8), strict=True):
    for seed in (1, 2, 3):
        _, top = draw_grams(depth, 3, seed)
        noise = np.random.default_rng(seed).standard_normal(len(x))
        axes.plot(x, np.linalg.cholesky(top + 1e-6 * np.eye(len(x))) @ noise)
    axes.set(title=f"depth {depth}", xlabel="x")
figure.axes[0].set_ylabel("f(x)")
figure

# %% [markdown]
# ## The Bartlett family
#
# A Wishart matrix with scale $S = LL^\top$ is $G = L T T^\top L^\top$, where T is a lower trapezoid
# with independent entries: the squares of the diagonal are Gamma variables, the entries below it
# standard normal ones (Bartlett, 1933). The posteriors keep this form and free its parameters:
#
# | family | G is | free |
# |---|---|---|
# | GW | $L T T^\top L^\top$ | shapes, rates, means and variances of T |
# | A-GW ("A") | $A T T^\top A^\top$ | also any invertible A |
# | AB-GW ("AB") | $A T B B^\top T^\top A^\top$ | also a lower-triangular B |
#
# Each contains the one above; A-GW [properly so](12_proper_superset.pct.py). Their densities are
# bijectors: triangular products, the outer product, a congruence. See
# [the bijectors](reference/distributions.md) for the log-determinants.
#
# One draw of T for eight points and ν = 3, what A and B make of it, and the Gram matrix of each.
# T is zero above its diagonal, so the first point has one feature and the second two; A removes
# that difference between points, and B mixes the three columns.

# %%
M, R = 8, 3
T = GeneralisedBartlett(
    concentration=(R - tf.range(R, dtype=tf.float64)) / 2.0 + 1.0,
    rate=tf.fill([R], tf.constant(0.5, tf.float64)),
    loc=tf.zeros([M, R], tf.float64),
    scale=tf.ones([M, R], tf.float64),
).sample(seed=0)
A = np.eye(M) + 0.5 * rng.standard_normal((M, M))
B = np.array([[1.0, 0.0, 0.0], [0.8, 1.0, 0.0], [-0.6, 0.9, 1.0]])
factors = {"T": T.numpy(), "A T": A @ T.numpy(), "A T B": A @ T.numpy() @ B}
figure = Figure(figsize=(8.0, 5.2), layout="constrained")
panels = figure.subplots(2, 3, gridspec_kw={"height_ratios": [1.2, 1.0]})
for above, below, (name, factor) in zip(*panels, factors.items(), strict=True):
    for axes, matrix, title in (
        (above, factor, f"F = {name}"),
        (below, factor @ factor.T, "F Fᵀ"),
    ):
        limit = np.abs(matrix).max()
        axes.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set(title=title, xticks=[], yticks=[])
    above.set(xlabel="column")
panels[0, 0].set_ylabel("point")
panels[1, 0].set_ylabel("point")
figure

# %% [markdown]
# ## Inducing points
#
# Every layer first draws the Gram matrix of M inducing points from its posterior Q, S times. Data
# follow one by one from the prior P, given these, so the cost of a batch grows with its size alone.
# At the top a Gaussian process, with values u at the inducing points, is integrated in closed form.
# The bound is
#
# $$\mathbb E\Big[\sum_n \mathbb E \log p(y_n | f_n) + \log P(u)/Q(u)
# + \sum_\ell \log P(G_\ell)/Q(G_\ell)\Big],$$
#
# and training returns every layer's share of it.
#
# ## What whitening does
#
# A posterior can be relative to the prior's scale, $A = L_S A'$ with $L_S L_S^\top = K/ν$, or lean
# towards a scale of its own, $(1-q) K/ν + q VV^\top$. Here is one layer of each kind with ν = 5.
# V of the second knows two groups, left and right, with q = 0.8; the two have the same T. Below
# them, the lengthscale of a kernel changes.

# %%
points, df = x[::3], 5


def make_layer(whiten):
    """A layer whose posterior is not the prior."""
    layer = WishartLayer(
        gpflow.kernels.SquaredExponential(), df, len(points), "GW", whiten=whiten, seed=0
    )
    factor = layer.bartlett_factor
    factor.scale.assign(np.full(factor.scale.shape, 0.7))
    if not whiten:
        groups = np.where(points < 0.0, [1.0, 0.0], [0.0, 1.0])
        root = np.pad(groups, [(0, 0), (0, len(points) - 2)])
        layer.scale_mixture.root.assign(np.sqrt(len(points) / df) * root)
        layer.scale_mixture.proportion.assign(0.8)
    return layer


def below(lengthscale):
    """The covariance that comes from below, [1, M, M]."""
    return gpflow.kernels.Matern12(lengthscales=lengthscale)(points)[None]


layers = {"relative to the prior": make_layer(True), "with a scale of its own": make_layer(False)}
figure = Figure(figsize=(8.6, 5.4), layout="constrained")
panels = figure.subplots(2, 3)
sizes = (0.1, 0.5, 2.0)
for row, (name, layer) in zip(panels, layers.items(), strict=True):
    means = [layer.posterior(below(size)).mean()[0].numpy() for size in sizes]
    plot_gram_matrices(means, [f"lengthscale {size} below" for size in sizes], list(row))
    row[0].set_ylabel(f"{name}\npoint")
for above, axes in panels.T:
    above.set_xlabel("")
    axes.set_title("")
figure.suptitle("mean of the posterior over G")
figure

# %% [markdown]
# The whitened posterior follows whatever comes from below; the other keeps its two groups. So the
# whitened one pays the same for each K, and the other one more, the less K agrees with V:

# %%
sizes = np.geomspace(0.1, 2.0, 30)
figure = Figure(figsize=(6.0, 3.4), layout="constrained")
axes = figure.subplots()
for name, layer in layers.items():
    costs = [
        -float(layer.sample_inducing(below(size), 1, seed=(0, 0)).log_ratio[0]) for size in sizes
    ]
    axes.semilogx(sizes, costs, label=name)
axes.set(xlabel="lengthscale below", ylabel="divergence from the prior (nats)")
axes.legend(frameon=False)
figure

# %% [markdown]
# The whitened posterior needs no factorisation of its own and no solve: steps are faster and
# better conditioned. It gives up V, the part of the posterior that does not follow what the layers
# below do, which can cost some of the bound.
