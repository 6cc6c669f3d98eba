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
# # Emulate a simulator
#
# A simulator that takes minutes or days for a run is replaced by an emulator that takes
# microseconds and says how uncertain it is. This goes the whole way: a design of runs, the emulator
# and whether it is any good, what the output depends on, where to run next, and which inputs can
# have led to an observation of the real system.

# %% tags=["hide-input"]
# %matplotlib inline
import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import qmc

from gpflow_dwp import emulation
from gpflow_dwp.estimator import DeepWishartRegressor

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
EFFORT = "quick" if FAST else "default"
NUM_FUNCTIONS = 8 if FAST else 40

# %% [markdown]
# ## A simulator and a design
#
# It waves quickly in one corner and hardly at all elsewhere, and has no noise. Designs need no
# module of ours: `scipy.stats.qmc` has Latin hypercubes and Sobol points.


# %%
def simulator(x: np.ndarray) -> np.ndarray:
    """The output of runs at inputs [N, 2]."""
    return np.sin(1.0 / ((0.7 * x[:, 0] + 0.3) * (0.7 * x[:, 1] + 0.3)))


bounds = np.array([[0.0, 1.0], [0.0, 1.0]])
X = qmc.LatinHypercube(2, optimization="random-cd", rng=0).random(40)
y = simulator(X)
emulator = DeepWishartRegressor(likelihood="noise_free", effort=EFFORT, random_state=0).fit(X, y)
print(emulator.reason_)

# %% [markdown]
# ## Is it any good?
#
# Each run, predicted from all others, without fitting again. Bars are two standard deviations; of
# the errors on the right some 5% may be beyond the grey lines.

# %%
left_out = emulation.leave_one_out(emulator)
figure = emulation.plot_leave_one_out(left_out)
print("CRPS / standard deviation of the runs:", left_out.crps.mean() / y.std())
figure

# %% [markdown]
# ## What does the output depend on?
#
# First-order and total Sobol indices, with 95% intervals over functions that the emulator thinks
# possible, and the output as a function of each input alone.

# %%
indices = emulation.sobol_indices(emulator, bounds, num_functions=NUM_FUNCTIONS)
effects = emulation.main_effects(emulator, bounds, num_functions=NUM_FUNCTIONS)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for offset, name in ((-0.1, "first"), (0.1, "total")):
    value, interval = getattr(indices, name), getattr(indices, f"{name}_interval")
    error = np.abs(interval - value)
    left.errorbar(np.arange(2) + offset, value, error, fmt="o", capsize=4, label=name)
left.set(xticks=[0, 1], xticklabels=["x1", "x2"], ylabel="Sobol index")
left.legend()
for index in range(2):
    right.fill_between(effects.points[index], *effects.interval[:, index], alpha=0.3)
    right.plot(effects.points[index], effects.mean[index], label=f"x{index + 1}")
right.set(xlabel="input", ylabel="expected output")
_ = right.legend()

# %% [markdown]
# ## Where to run next
#
# Four runs at a time, where they reduce the variance of the whole square most. `tell` trains on
# from where the emulator is.

# %%
test = qmc.Sobol(2, rng=1).random(512)
errors = [np.sqrt(np.mean((emulator.predict(test) - simulator(test)) ** 2))]
for _ in range(1 if FAST else 5):
    new = emulation.suggest(emulator, bounds, batch=4)
    emulator.tell(new, simulator(new))
    errors.append(np.sqrt(np.mean((emulator.predict(test) - simulator(test)) ** 2)))
print("root mean squared errors:", np.round(errors, 4))

# %% [markdown]
# ## History matching
#
# The real system was observed once, with an error of 0.05, and the simulator is trusted to 0.05.
# Inputs whose implausibility is above 3 are ruled out. The truth here is x = (0.3, 0.25). A first
# wave uses an emulator of 15 runs; the second one adds runs among the inputs that are left.

# %%
true_input = np.array([[0.3, 0.25]])
observed = simulator(true_input)[0] + 0.03
spread = {"observation_std": 0.05, "discrepancy_std": 0.05}
grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 60)] * 2), axis=-1).reshape(-1, 2)
X = qmc.LatinHypercube(2, optimization="random-cd", rng=2).random(15)
wave = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=0)
wave.fit(X, simulator(X))
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for number, axes in enumerate(panels, start=1):
    values = emulation.implausibility(wave, grid, observed, **spread)
    levels = np.linspace(0.0, 6.0, 13)
    shown = axes.tricontourf(*grid.T, values, levels=levels, extend="max")
    axes.plot(*true_input.T, "r*", markersize=12)
    axes.set_title(f"wave {number}: {np.mean(values < 3.0):.0%} are left")
    at_truth = emulation.implausibility(wave, true_input, observed, **spread)[0]
    print(f"wave {number}: implausibility of the truth {at_truth:.2f}")
    new = emulation.suggest(wave, bounds, batch=8, candidates=grid[values < 3.0][::3])
    wave.tell(new, simulator(new))
_ = figure.colorbar(shown, label="implausibility")
