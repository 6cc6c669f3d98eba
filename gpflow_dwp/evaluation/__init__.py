"""Predictive distributions and plots, in raw units.

Plots draw on the axes that they are given, or on those of a new figure, and return them.
"""

from gpflow_dwp.evaluation.model_plots import (
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
)
from gpflow_dwp.evaluation.plots import (
    plot_calibration,
    plot_functions_1d,
    plot_model_1d,
    plot_predictions,
)
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.evaluation.raw_units import RawUnits

__all__ = [
    "PredictiveDistribution",
    "RawUnits",
    "plot_calibration",
    "plot_functions_1d",
    "plot_gram_matrices",
    "plot_layer_divergences",
    "plot_layer_grams",
    "plot_learning_curve",
    "plot_model_1d",
    "plot_predictions",
]
