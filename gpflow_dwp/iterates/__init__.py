"""Posteriors over the iterates of a training run."""

from gpflow_dwp.iterates.factor_analysis_posterior import FactorAnalysisPosterior
from gpflow_dwp.iterates.factor_model import FactorModel
from gpflow_dwp.iterates.iterate_posterior import (
    IteratePosterior,
    assign_parameter_vector,
    parameter_vector,
)
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.iterates.multi_swag import MultiSWAG
from gpflow_dwp.iterates.online_factor_analysis import (
    OnlineEM,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    observe_all,
)
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
    "OnlineFactorAnalysis",
    "OnlineGradientAscent",
    "assign_parameter_vector",
    "observe_all",
    "parameter_vector",
]
