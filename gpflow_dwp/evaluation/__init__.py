"""Scores and plots of predictions, in raw units.

Plots draw on the axes that they are given, or on those of a new figure, and return them.
"""

from gpflow_dwp.evaluation.metrics import (
    accuracy,
    expected_calibration_error,
    explained_variance,
    interval_coverage,
    mean_log_density,
    rmse,
)
from gpflow_dwp.evaluation.plots import (
    plot_calibration,
    plot_functions_1d,
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
    plot_model_1d,
    plot_partial_dependence,
    plot_pit,
    plot_predictions,
    plot_relevance,
    plot_reliability,
)
from gpflow_dwp.evaluation.predictions import judge, predict
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.evaluation.raw_units import RawUnits
from gpflow_dwp.evaluation.sampled_marginals import kernel_log_density, shapiro_wilk_statistics
from gpflow_dwp.evaluation.scores import Scores

__all__ = [
    "PredictiveDistribution",
    "RawUnits",
    "Scores",
    "accuracy",
    "expected_calibration_error",
    "explained_variance",
    "interval_coverage",
    "judge",
    "kernel_log_density",
    "mean_log_density",
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
    "predict",
    "rmse",
    "shapiro_wilk_statistics",
]
