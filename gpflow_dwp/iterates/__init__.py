"""Posteriors over the iterates of a training run."""

from gpflow_dwp.iterates.distances import relative_frobenius_distance, wasserstein_distance
from gpflow_dwp.iterates.factor_analysis_posterior import FactorAnalysisPosterior
from gpflow_dwp.iterates.factor_model import FactorModel, generate_factor_model
from gpflow_dwp.iterates.iterate_posterior import IteratePosterior
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.iterates.multi_swag import MultiSWAG
from gpflow_dwp.iterates.online_factor_analysis import (
    OnlineEM,
    OnlineEMState,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    OnlineGradientAscentState,
    observe_all,
)
from gpflow_dwp.iterates.parameter_vector import assign_parameter_vector, parameter_vector
from gpflow_dwp.iterates.swag import SWAG, IterateAverage

__all__ = [
    "SWAG",
    "FactorAnalysisPosterior",
    "FactorModel",
    "IterateAverage",
    "IteratePosterior",
    "MixturePredictions",
    "MultiSWAG",
    "OnlineEM",
    "OnlineEMState",
    "OnlineFactorAnalysis",
    "OnlineGradientAscent",
    "OnlineGradientAscentState",
    "assign_parameter_vector",
    "generate_factor_model",
    "observe_all",
    "parameter_vector",
    "relative_frobenius_distance",
    "wasserstein_distance",
]
