"""What people who emulate expensive simulators ask of a fitted model, in raw units.

Each function takes a fitted :class:`~gpflow_dwp.estimator.DeepWishartRegressor` or a
:class:`~gpflow_dwp.estimator.ChainedEmulator`, or a trained model of ours, whose units are then raw
ones.
"""

from gpflow_dwp.emulation.design import suggest
from gpflow_dwp.emulation.leave_one_out import leave_one_out, plot_leave_one_out
from gpflow_dwp.emulation.matching import (
    implausibility,
    input_posterior,
    plot_implausibility,
    sample_plausible,
)
from gpflow_dwp.emulation.sensitivity import gradient, main_effects, sobol_indices

__all__ = [
    "gradient",
    "implausibility",
    "input_posterior",
    "leave_one_out",
    "main_effects",
    "plot_implausibility",
    "plot_leave_one_out",
    "sample_plausible",
    "sobol_indices",
    "suggest",
]
