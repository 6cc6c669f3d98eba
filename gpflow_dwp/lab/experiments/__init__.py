"""Experiments, of other papers and with the depth of models."""

from gpflow_dwp.lab.experiments.deep_wishart_iterates import DeepWishart
from gpflow_dwp.lab.experiments.experiment import (
    Experiment,
    add_to_table,
    provenance_here,
    read_table,
    summarise,
)
from gpflow_dwp.lab.experiments.factor_analysis import FactorAnalysis
from gpflow_dwp.lab.experiments.growing_depth import GrowingDepth
from gpflow_dwp.lab.experiments.linear_regression import (
    LinearPosterior,
    LinearPrediction,
    linear_regression_posterior,
    sgd_iterates,
    window_means,
)
from gpflow_dwp.lab.experiments.multi_swag import MultiSWAGOfWishart, train_members

__all__ = [
    "DeepWishart",
    "Experiment",
    "FactorAnalysis",
    "GrowingDepth",
    "LinearPosterior",
    "LinearPrediction",
    "MultiSWAGOfWishart",
    "add_to_table",
    "linear_regression_posterior",
    "provenance_here",
    "read_table",
    "sgd_iterates",
    "summarise",
    "train_members",
    "window_means",
]
