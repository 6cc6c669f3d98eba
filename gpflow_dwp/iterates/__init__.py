"""Posteriors over the iterates of a training run."""

from gpflow_dwp.iterates.iterate_posterior import (
    FactorModel,
    IteratePosterior,
    MixturePredictions,
    assign_parameter_vector,
    parameter_vector,
)
from gpflow_dwp.iterates.online_factor_analysis import (
    OnlineEM,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    observe_all,
)
from gpflow_dwp.iterates.swag import SWAG, FactorAnalysisPosterior, IterateAverage, MultiSWAG

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
