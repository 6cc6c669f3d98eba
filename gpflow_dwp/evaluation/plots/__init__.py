"""Figures: each function draws on the axes it is given, or on new ones, and returns them.

Vectors may be [N] or [N, 1]. What does not fit together is a :class:`ValueError`. No global state
of pyplot is touched: ``axes.figure.savefig(path)`` writes a figure, and a notebook shows
``axes.figure``.
"""

from gpflow_dwp.evaluation.plots.models import (
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
    plot_partial_dependence,
    plot_relevance,
)
from gpflow_dwp.evaluation.plots.predictions import (
    plot_calibration,
    plot_functions_1d,
    plot_model_1d,
    plot_pit,
    plot_predictions,
    plot_reliability,
)

__all__ = [
    "plot_calibration",
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
