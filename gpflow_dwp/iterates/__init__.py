"""Posteriors over the iterates of a training run."""

from gpflow_dwp.iterates.distances import relative_frobenius_distance, wasserstein_distance
from gpflow_dwp.iterates.factor_model import FactorModel, generate_factor_model
from gpflow_dwp.iterates.online_factor_analysis import (
    OnlineEM,
    OnlineEMState,
    OnlineFactorAnalysis,
    OnlineGradientAscent,
    OnlineGradientAscentState,
    observe_all,
)

__all__ = [
    "FactorModel",
    "OnlineEM",
    "OnlineEMState",
    "OnlineFactorAnalysis",
    "OnlineGradientAscent",
    "OnlineGradientAscentState",
    "generate_factor_model",
    "observe_all",
    "relative_frobenius_distance",
    "wasserstein_distance",
]
