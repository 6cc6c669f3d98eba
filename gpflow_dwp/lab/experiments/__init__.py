"""Experiments of other papers, rerun: each yields its results row by row."""

from gpflow_dwp.lab.experiments.deep_wishart_iterates import compare_iterate_posteriors
from gpflow_dwp.lab.experiments.factor_analysis import SAMPLE_SIZES, recover_factor_models
from gpflow_dwp.lab.experiments.linear_regression import (
    LinearRegressionPosterior,
    compare_iterates_with_posterior,
    compare_predictions,
    linear_regression_posterior,
    sgd_iterates,
    window_means,
)

__all__ = [
    "SAMPLE_SIZES",
    "LinearRegressionPosterior",
    "compare_iterate_posteriors",
    "compare_iterates_with_posterior",
    "compare_predictions",
    "linear_regression_posterior",
    "recover_factor_models",
    "sgd_iterates",
    "window_means",
]
