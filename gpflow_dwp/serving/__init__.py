"""Trained models for other programs: those without this package, those with their own interface.

:func:`export_model` writes a model for TensorFlow alone; :class:`BayesianOptimizationModel` gives a
model the methods that Bayesian-optimisation libraries call.
"""

from gpflow_dwp.serving.bayesian_optimization import BayesianOptimizationModel, ObservedData
from gpflow_dwp.serving.export import export_model
from gpflow_dwp.serving.trajectories import DrawFunctions, Trajectory, TrajectorySampler

__all__ = [
    "BayesianOptimizationModel",
    "DrawFunctions",
    "ObservedData",
    "Trajectory",
    "TrajectorySampler",
    "export_model",
]
