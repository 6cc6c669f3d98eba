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
# # What A-GW can be and GW cannot, and AB-GW and A-GW cannot
#
# The approximate posteriors of a Wishart layer are distributions of Gram matrices $G = F F^T$ with
# $F = L T$ (the generalised Wishart, GW) or $F = A T$ (A-GW), where $T$ is a lower trapezoid of
# independent entries, $T_{jj} > 0$ with $T_{jj}^2 \sim \mathrm{Gamma}(\alpha_j, \text{rate }
# \beta_j)$ and $T_{ij} \sim N(\mu_{ij}, \sigma_{ij}^2)$ below its diagonal. $L$ is lower triangular
# and $A$ any invertible matrix, so every GW is an A-GW. This notebook shows that the converse does
# not hold: section 5.3 and Figure 1 of "An Improved Variational Approximate Posterior for the Deep
# Wishart Process" (Ober, Anson, Milsom and Aitchison, 2023). Then it shows that AB-GW, $F = A T B$
# with a lower-triangular $B$, [contains more than A-GW](#ab-gw-contains-more-than-a-gw), which that
# paper leaves open.
#
# For the first it is enough to look at one entry, $G_{11}$.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from scipy import stats

from gpflow_dwp.distributions import (
    ABGeneralisedSingularWishart,
    AGeneralisedSingularWishart,
    GeneralisedSingularWishart,
)

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened
NUM_DRAWS = 1_000 if FAST else 10_000

# %% [markdown]
# ## The top-left entry
#
# **GW.** The first row of $L T$ has one entry that is not zero, $L_{11} T_{11}$. Whatever the
# parameters, $G_{11} = L_{11}^2 T_{11}^2 \sim \mathrm{Gamma}(\alpha_1, \text{rate }
# \beta_1 / L_{11}^2)$.
#
# **A-GW.** The first row of $A T$ mixes all rows of $T$. Take the smallest case, two rows and one
# column: $T = (t, n)^T$ with $t^2 \sim \mathrm{Gamma}(\frac12, \frac12)$ and $n \sim N(\mu,
# \sigma^2)$. An $A$ that swaps the rows gives $G_{11} = n^2$, which is $\sigma^2$ times a
# **non-central chi-squared** variable with one degree of freedom and non-centrality $\lambda =
# \mu^2/\sigma^2$.
#
# **That is no Gamma distribution** unless $\mu = 0$. The cumulants of
# $\mathrm{Gamma}(\alpha, \beta)$ are $\kappa_k = (k - 1)!\, \alpha / \beta^k$, so
# $\kappa_1 \kappa_3 = 2 \kappa_2^2$ for all of them. Those of $n^2$ are
# $\kappa_k = 2^{k-1} (k - 1)! \,(1 + k \lambda)\, \sigma^{2k}$, and
#
# $$\kappa_1 \kappa_3 - 2 \kappa_2^2
#   = 8 \sigma^8 \{(1 + \lambda)(1 + 3 \lambda) - (1 + 2 \lambda)^2\} = -8 \lambda^2 \sigma^8.$$
#
# As in the paper's figure, $n \sim N(3, 2)$.

# %%
MEAN, VARIANCE = 3.0, 2.0
non_central = stats.ncx2(1, MEAN**2 / VARIANCE, scale=VARIANCE)
mean, variance, skewness = (float(moment) for moment in non_central.stats("mvs"))
excess = mean * skewness * variance**1.5 - 2.0 * variance**2
print(f"κ₁ κ₃ - 2 κ₂² = {excess:.1f}, and by the formula {-8.0 * MEAN**4 * VARIANCE**2:.1f}")

# %% [markdown]
# ## Drawing it
#
# The Wishart's own factor has $t^2 \sim \mathrm{Gamma}(\frac12, \text{rate } \frac12)$. With one
# degree of freedom $T$ has one column; the entry of `loc` and `scale` on its diagonal is ignored.


# %%
def top_left_of_agw(row_mixing, loc, variance, seed):
    """Draw the top-left entry of an A-GW matrix with one degree of freedom."""
    distribution = AGeneralisedSingularWishart(
        df=1,
        row_mixing=row_mixing,
        concentration=[0.5],
        rate=[0.5],
        loc=[[0.0], [loc]],
        scale=[[1.0], [np.sqrt(variance)]],
    )
    return distribution.sample(NUM_DRAWS, seed=[seed, 0]).numpy()[:, 0, 0]


gw = GeneralisedSingularWishart(
    df=1,
    scale_tril=[[2.0, 0.0], [1.0, 1.0]],
    concentration=[0.7],
    rate=[0.4],
    loc=[[0.0], [3.0]],
    scale=[[1.0], [1.0]],
)
gw_draws = gw.sample(NUM_DRAWS, seed=[0, 0]).numpy()[:, 0, 0]
swapped_draws = top_left_of_agw([[0.0, 1.0], [1.0, 0.0]], MEAN, VARIANCE, seed=1)

# %% [markdown]
# ## The paper's own $A$
#
# The paper takes $A = \begin{pmatrix} 1 & 1 \\ 0 & 1 \end{pmatrix}$, $n \sim N(3, 1)$ and
# $t \sim N(0, 1)$, *of either sign*, so that $G_{11} = (t + n)^2$ with $t + n \sim N(3, 2)$: the
# same non-central chi-squared law. In the densities of the GW family, as in Bartlett's
# decomposition, $t$ is positive. Then $t + n$ is **skew-normal** instead (location 3, scale
# $\sqrt2$, shape $1/\sigma = 1$) and $G_{11}$ its square: not a Gamma variable either. The sign of
# $t$ can be moved into $n$, so the paper's $G$ is an equal mixture of the A-GW matrices with
# $\mu = 3$ and $\mu = -3$.

# %%
PAPERS_MIXING = [[1.0, 1.0], [0.0, 1.0]]
papers_draws = top_left_of_agw(PAPERS_MIXING, MEAN, 1.0, seed=2)
skew_normal = stats.skewnorm(1.0, loc=MEAN, scale=np.sqrt(2.0))


def squared_skew_normal_cdf(x):
    """Return P(X² ≤ x) for the skew-normal X."""
    root = np.sqrt(x)
    return skew_normal.cdf(root) - skew_normal.cdf(-root)


mixture_draws = np.concatenate(
    [
        top_left_of_agw(PAPERS_MIXING, sign * MEAN, 1.0, seed)[: NUM_DRAWS // 2]
        for seed, sign in ((3, 1.0), (4, -1.0))
    ]
)

# %% [markdown]
# ## The figure
#
# Each panel sets the ordered draws against the same quantiles of the closest Gamma distribution,
# the one of highest likelihood. Draws from a Gamma distribution lie on the diagonal. The exact law
# of $G_{11}$ is the line through the points.

# %%
probabilities = (np.arange(NUM_DRAWS) + 0.5) / NUM_DRAWS
grid = np.linspace(0.0, 15.0, 10_001) ** 2
panels = {
    "GW": (gw_draws, stats.gamma(0.7, scale=2.0**2 / 0.4).ppf(probabilities)),
    "A-GW, rows swapped": (swapped_draws, non_central.ppf(probabilities)),
    "A-GW, the paper's A": (
        papers_draws,
        np.interp(probabilities, squared_skew_normal_cdf(grid), grid),
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (title, (draws, exact)) in zip(axes, panels.items(), strict=True):
    shape, _, scale = stats.gamma.fit(draws, floc=0.0)
    fitted = stats.gamma(shape, scale=scale).ppf(probabilities)
    axis.plot(fitted, np.sort(draws), ".", markersize=3, label="draws")
    axis.plot(fitted, exact, label="exact law")
    largest = max(fitted[-1], exact[-1])
    axis.plot([0.0, largest], [0.0, largest], "k--", linewidth=1, label="a Gamma law")
    axis.set(title=title, xlabel="quantiles of the closest Gamma", ylabel="ordered $G_{11}$")
axes[0].legend()
figure

# %% [markdown]
# In figures: the largest distance between the distribution function of the draws and each law
# (Kolmogorov-Smirnov), and how often a sample of this size that did follow the law would be as far
# from it.

# %%
laws = {
    "GW": (gw_draws, stats.gamma(0.7, scale=2.0**2 / 0.4).cdf),
    "A-GW, rows swapped": (swapped_draws, non_central.cdf),
    "A-GW, the paper's A": (papers_draws, squared_skew_normal_cdf),
    "their mixture, t of either sign": (mixture_draws, non_central.cdf),
}
for name, (draws, cdf) in laws.items():
    shape, _, scale = stats.gamma.fit(draws, floc=0.0)
    to_gamma = stats.kstest(draws, stats.gamma(shape, scale=scale).cdf)
    to_exact = stats.kstest(draws, cdf)
    print(
        f"{name:32s} closest Gamma {to_gamma.statistic:.3f} (p = {to_gamma.pvalue:.0e}), "
        f"exact law {to_exact.statistic:.3f} (p = {to_exact.pvalue:.2f})"
    )

# %% [markdown]
# ## AB-GW contains more than A-GW
#
# **Proposition.** Let $\nu, M \ge 2$, $A = I$, $\alpha_1 < \frac12$ and $B_{21} \neq 0$. No A-GW
# has the law of this AB-GW. So GW, A-GW and AB-GW are each strictly within the next, for all
# $\nu, M \ge 2$. (For the first two, an $A$ that swaps the first two rows gives
# $G_{11} = T_{21}^2 + T_{22}^2$, a non-central chi-squared variable where $\alpha_2$ and $\beta_2$
# make $T_{22}^2$ a central one, and no Gamma variable, as above.)
#
# **Proof.** $T B$ is lower trapezoidal with a positive diagonal, so the first two rows of the
# Cholesky factor of $G$ are
#
# $$L_{11} = B_{11} T_{11}, \qquad L_{21} = B_{11} T_{21} + B_{21} T_{22}, \qquad
#   L_{22} = B_{22} T_{22}.$$
#
# Hence $G_{11} = L_{11}^2$ is a $\mathrm{Gamma}(\alpha_1)$ variable up to scale, and
# $P(G_{11} < x)$ falls as $x^{\alpha_1}$ for $x \to 0$.
#
# Let $F = A' T'$ make an A-GW of the same law, and $a$ be the first row of $A'$. Then $F_{11} =
# \sum_i a_i T'_{i1}$. If $a_k \neq 0$ for a $k > 1$, then given all else $F_{11}$ is normal with
# deviation $|a_k| \sigma'_{k1}$, whose density is nowhere above
# $1 / (\sqrt{2 \pi} |a_k| \sigma'_{k1})$, and $G_{11} \ge F_{11}^2$, so that
#
# $$P(G_{11} < x) \le P\big(|F_{11}| < \sqrt{x}\big)
#   \le \frac{2 \sqrt{x}}{\sqrt{2 \pi} |a_k| \sigma'_{k1}},$$
#
# which is below $x^{\alpha_1}$ for small $x$, as $\alpha_1 < \frac12$. So $a$ is a multiple of the
# first unit vector, and the first row of $F$ is $(a_1 T'_{11}, 0, \dots)$. Then $L_{21} = \pm
# F_{21}$ is a function of the first column of $T'$, and $L_{22}^2 = G_{22} - L_{21}^2 =
# \sum_{j > 1} F_{2j}^2$ one of the others: these are **independent**. In the AB-GW they are not:
# $\mathrm{Cov}(L_{21}, L_{22}) = B_{21} B_{22} \mathrm{Var}(T_{22}) \neq 0$. $\square$
#
# Below $\alpha_1 = \frac14$, all else is as in the Wishart's own factor, and $B$ has ones on and
# below its diagonal. The correlation of $L_{21}$ and $L_{22}$ is
# $\sqrt{v / (1 + v)}$ with $v = \mathrm{Var}(T_{22}) = 1 - 2/\pi$.

# %%
common = {
    "df": 2,
    "concentration": [0.25, 0.5],
    "rate": [0.5, 0.5],
    "loc": np.zeros((2, 2)),
    "scale": np.ones((2, 2)),
}
ab_gw = ABGeneralisedSingularWishart(
    row_mixing=np.eye(2), column_mixing_tril=[[1.0, 0.0], [1.0, 1.0]], **common
)
families = {
    "AB-GW": ab_gw,
    "A-GW, $a_{12} = 1$": AGeneralisedSingularWishart(
        row_mixing=[[1.0, 1.0], [0.0, 1.0]], **common
    ),
    "A-GW, $a_{12} = 0$": AGeneralisedSingularWishart(
        row_mixing=[[1.0, 0.0], [1.0, 1.0]], **common
    ),
}
grams = {name: np.asarray(law.sample(NUM_DRAWS, seed=[5, 0])) for name, law in families.items()}

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for name in list(families)[:2]:
    axes[0].loglog(np.sort(grams[name][:, 0, 0]), probabilities, label=name)
x = np.logspace(-12.0, 0.0, 50)
axes[0].plot(x, x**0.25, "k:", linewidth=1, label=r"$\propto x^{1/4}$")
axes[0].plot(
    x, np.sqrt(2.0 * x / np.pi), "k--", linewidth=1, label=r"the bound, $\propto \sqrt{x}$"
)
axes[0].set(xlabel="x", ylabel="$P(G_{11} < x)$", ylim=(0.5 / NUM_DRAWS, 1.5), xlim=(1e-12, 10.0))
axes[0].legend()
v = 1.0 - 2.0 / np.pi
print(f"exact correlation in the AB-GW {np.sqrt(v / (1.0 + v)):.3f}")
for axis, name in zip(axes[1:], ("AB-GW", "A-GW, $a_{12} = 0$"), strict=True):
    factors = np.linalg.cholesky(grams[name])
    correlation = np.corrcoef(factors[:, 1, 0], factors[:, 1, 1])[0, 1]
    axis.plot(factors[:, 1, 1], factors[:, 1, 0], ".", markersize=2, alpha=0.3)
    axis.set(title=f"{name}: correlation {correlation:.3f}", xlabel="$L_{22}$", ylabel="$L_{21}$")
figure

# %% [markdown]
# ## Which parameters can be told
#
# Each row and each column has a scale too many: for positive diagonal $C$ and $D$, $[M, M]$ and
# $[R, R]$ with $R = \min(\nu, M)$, the factor $C^{-1} T D^{-1}$ is one of the same family, with
# rates $\beta_j c_j^2 d_j^2$, means $\mu_{ij} / (c_i d_j)$ and deviations
# $\sigma_{ij} / (c_i d_j)$, and $(A C) (C^{-1} T D^{-1}) (D B) = A T B$. So $\beta_j = \frac12$
# for all $j$, $\sigma_{i1} = 1$ for rows $i > R$ and $B_{jj} = 1$ take nothing away: $M + R$
# numbers less. What is left can be told from the law of $G$, but for signs: here the rank of the
# Fisher information is the number of parameters less $M + R$.

# %%
M, R = 3, 2
rng = np.random.default_rng(0)
start = {
    "row_mixing": np.eye(M) + 0.3 * rng.normal(size=(M, M)),
    "column_mixing_tril": np.array([[1.2, 0.0], [0.4, 0.8]]),
    "concentration": np.array([1.3, 0.9]),
    "rate": np.array([0.6, 0.8]),
    "loc": 0.4 * np.tril(rng.normal(size=(M, R)), -1),
    "scale": rng.uniform(0.6, 1.2, (M, R)),
}
lower = {"column_mixing_tril": np.tril(np.ones((R, R)))}
lower |= dict.fromkeys(("loc", "scale"), np.tril(np.ones((M, R)), -1))
draws = ABGeneralisedSingularWishart(R, **start).sample(200, seed=[6, 0])
variables = {name: tf.Variable(value) for name, value in start.items()}
with tf.GradientTape() as tape:
    log_probs = ABGeneralisedSingularWishart(R, **variables).log_prob(draws)
jacobians = tape.jacobian(log_probs, variables)
scores = np.concatenate(
    [
        jacobians[name].numpy()[:, lower.get(name, np.ones_like(value)) > 0.0]
        for name, value in start.items()
    ],
    axis=1,
)
sizes = np.linalg.svd(scores, compute_uv=False)
rank = int(np.sum(sizes > 1e-8 * sizes[0]))
print(f"{scores.shape[1]} parameters, rank {rank}; {M} + {R} do not count")
