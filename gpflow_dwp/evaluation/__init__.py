"""Scores and plots of predictions, in raw units."""

from gpflow_dwp.evaluation.baselines import (
    linear_scores,
    logistic_scores,
    sparse_gp_scores,
    train_sparse_classifier,
)
from gpflow_dwp.evaluation.metrics import (
    accuracy,
    expected_calibration_error,
    explained_variance,
    interval_coverage,
    mean_log_density,
    mixture_crps,
    rmse,
)
from gpflow_dwp.evaluation.mixture import mixture_cdf, mixture_log_density, mixture_quantile
from gpflow_dwp.evaluation.plots import (
    plot_calibration,
    plot_depth_effect,
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
from gpflow_dwp.evaluation.predictions import (
    INTERVAL,
    Judgement,
    LabelPredictions,
    NumberPredictions,
    judge,
    predict,
)
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.evaluation.raw_units import RawUnits
from gpflow_dwp.evaluation.sampled_marginals import (
    kernel_log_density,
    shapiro_wilk_statistics,
)
from gpflow_dwp.evaluation.scores import Scores

__all__ = [
    "INTERVAL",
    "Judgement",
    "LabelPredictions",
    "NumberPredictions",
    "PredictiveDistribution",
    "RawUnits",
    "Scores",
    "accuracy",
    "expected_calibration_error",
    "explained_variance",
    "interval_coverage",
    "judge",
    "kernel_log_density",
    "linear_scores",
    "logistic_scores",
    "mean_log_density",
    "mixture_cdf",
    "mixture_crps",
    "mixture_log_density",
    "mixture_quantile",
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
    "predict",
    "rmse",
    "shapiro_wilk_statistics",
    "sparse_gp_scores",
    "train_sparse_classifier",
]
