"""Figures: each function draws on the axes it is given, or on new ones, and returns them.

No global state of pyplot is touched: ``axes.figure.savefig(path)`` writes a figure, and a notebook
shows ``axes.figure``.
"""

from gpflow_dwp.evaluation.plots.grams import plot_gram_matrices
from gpflow_dwp.evaluation.plots.predictions import (
    plot_calibration,
    plot_functions_1d,
    plot_predictions,
)
from gpflow_dwp.evaluation.plots.training import plot_learning_curve

__all__ = [
    "plot_calibration",
    "plot_functions_1d",
    "plot_gram_matrices",
    "plot_learning_curve",
    "plot_predictions",
]
