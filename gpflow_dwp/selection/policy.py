"""The numbers that decide which model is kept, how much is tried, and on how many rows.

All were found on seeds from 10 on and splits from 5 on, never on those of claims. After the dash
are cases to watch where one is changed: ``python ci/policy.py`` halves and doubles them, and tells
which cases take notice.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["Effort"]

Effort = Literal["quick", "default", "thorough"]
"""How much is tried: a single layer; depth 2 as well; more steps and depth 3, too."""

# ---- Rows
EXACT_ROWS = 1_000
"""Up to so many rows inference is exact; of more, so many choose, so many are left out, and so many
are in a minibatch - periods, kin8nm."""
ROWS_FOR_CHOICE = 500
"""So many choose the kernel and likelihood of single layers, and may have draws of the kernel -
kin8nm, power."""
ROWS_FOR_STARTS = 250
"""So many find where single layers start, by random or next to each other - daily, periods."""
FEW_ROWS = 120
"""Up to so many rows deep candidates of two kernels are tried, and scores of single layers flatter
what has a lengthscale of each input - step, swirl, jump, small tables."""
FEWEST_ROWS = 20
"""So many rows have to be whole, or an output observed in, to be fitted by themselves."""
NEIGHBOURS = 50
"""From so many nearest rows residuals of inducing points are predicted - friedman, periods. Without
these points, twice as many - ripples."""
NEIGHBOURS_OF_FIT = 30
"""Given so many nearest rows a single layer of many rows is fitted - periods."""

MOST_STARTS = 2
"""So many peaks of the evidence over lengthscales are gone up to - ripples, multivalley."""
ITERATIONS = 50
"""Of L-BFGS, at most, where it starts from a fitted process, or for a sum."""
FEWEST_ITERATIONS = 10
"""With fewer, sums and draws of the kernel are not tried: values are not at their mode."""

# ---- Comparison
MARGIN = 2.0
"""How far means may be outside of what was observed, in ranges of that: others are not sane."""
LEFT_TO_GAIN = 0.01
"""A deeper model is tried where a single layer leaves more, as a share of the CRPS of what was
observed without inputs: below, depth is 1.5 to 4.5 times worse - otl_circuit, wingweight."""
SURE_ERRORS = 3.0
"""Where it gains so many standard errors, CRPS may be higher by one of its own - yacht, xiong."""
LEVEL = 0.05
"""As a share: two mean scores are level that differ by no more, nor by a standard error. Draws of
the kernel are not kept that change predictions by less, in deviations - piston."""
LEVEL_NATS = 0.01
"""Mean log densities are level that differ by no more, in nats a row. A deeper model has to gain
more, and is not tried where a function that is known would gain less than four times as much, or of
many rows less than is sure to be told; tails that gain more are kept with less evidence, which is a
bound - cantilever_D, crater, outliers, small tables."""
NATS_OF_PARAMETER = 1.0
"""What each parameter of a kernel counts for, and tails, as in Akaike's criterion; of few rows a
sum may be behind by two of them - borehole, small tables."""
SURE_NATS = 10.0
"""With so much more evidence predictions need not be surely better - share, rain. A warp without
noise has to have so much more of few rows to be tried - skewed."""
LOSS_OF_WARP = 0.5
"""What a warp may cost a row that it was not fitted to, of many rows - diamonds. Without noise what
it has to gain of the logarithm of CRPS - skewed."""
MOST_NATS_OF_A_ROW = 20.0
"""No row counts for more, and no row of few may be missed by more - twelve_orders, gamma_mix."""
SURE_GAIN_OF_CRPS = 9.0
"""In standard errors: a warp's gain that no row which is missed outweighs - twelve_orders."""
NATS_OF_FIT = 0.25
"""A bound below a plain process's by so many nats a row is of a posterior that has run away."""

# ---- Training
STEPS: dict[Effort, int] = {"quick": 3_000, "default": 3_000, "thorough": 8_000}
"""Gradient steps of deep regressions; by default of more rows than choose kernels fewer, by the
square root of their number - concrete."""
STEPS_OF_OTHERS = 1_000
"""Of any other model."""
STEPS_OF_BATCHES = 600
"""Of minibatches of numbers."""
DEEPEST: dict[Effort, int] = {"quick": 1, "default": 2, "thorough": 3}
"""How deep models are."""
ROOM = 5
"""Degrees of freedom of Wishart layers, and the number of inputs where that is less - jump."""
LEAST_NOISE = 0.02
"""Variance of noise at which deep models start, at least: features are random as yet."""
STAGES: tuple[tuple[float, int | None], ...] = ((0.13, None), (0.33, 2), (0.54, 1))
"""Shares of the steps that each candidate, the best two and the best one take - ignition. Where
bounds choose, one that is lower by LEVEL_NATS ends a model before the last of them."""
ANNEALING_OF_ONE = 0.5
"""Share of the steps in which log ratios are annealed, of one candidate - step."""
