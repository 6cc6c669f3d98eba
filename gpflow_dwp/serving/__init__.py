"""Trained models for other programs: those without this package, those with their own interface.

:func:`export_model` writes a model for TensorFlow alone; :class:`BayesianOptimizationModel` gives a
model the methods that Trieste calls.
"""

from gpflow_dwp.serving.bayesian_optimization import BayesianOptimizationModel
from gpflow_dwp.serving.export import export_model

__all__ = ["BayesianOptimizationModel", "export_model"]
