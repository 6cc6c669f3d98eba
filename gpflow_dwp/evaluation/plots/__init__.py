"""Figures: each function draws on the axes it is given, or on new ones, and returns them.

No global state of pyplot is touched: ``axes.figure.savefig(path)`` writes a figure, and a notebook
shows ``axes.figure``.
"""

from gpflow_dwp.evaluation.plots.depth import plot_depth_effect
from gpflow_dwp.evaluation.plots.grams import plot_gram_matrices, plot_layer_grams
from gpflow_dwp.evaluation.plots.inputs import plot_partial_dependence, plot_relevance
from gpflow_dwp.evaluation.plots.predictions import (
    plot_calibration,
    plot_functions_1d,
    plot_model_1d,
    plot_pit,
    plot_predictions,
    plot_reliability,
)
from gpflow_dwp.evaluation.plots.training import plot_layer_divergences, plot_learning_curve

__all__ = [
    "plot_calibration",
    "plot_depth_effect",
    "plot_functions_1d",
    "plot_gram_matrices",
    "plot_layer_divergences",
    "plot_layer_grams",
    "plot_learning_curve",
    "plot_model_1d",
    "plot_partial_dependence",
    "plot_pit",
    "plot_predictions",
    "plot_relevance",
    "plot_reliability",
]
