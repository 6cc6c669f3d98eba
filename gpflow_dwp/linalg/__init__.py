"""Linear algebra of covariances, each function with a gradient of its own."""

from gpflow_dwp.linalg.conditionals import conditional_mean, conditional_moments, explained_moments
from gpflow_dwp.linalg.factorisation import (
    Factorised,
    as_jitter,
    cholesky,
    factorise,
    relative_jitter,
)
from gpflow_dwp.linalg.posteriors import pseudo_target_posterior, regression_posterior
from gpflow_dwp.linalg.triangular import whiten

__all__ = [
    "Factorised",
    "as_jitter",
    "cholesky",
    "conditional_mean",
    "conditional_moments",
    "explained_moments",
    "factorise",
    "pseudo_target_posterior",
    "regression_posterior",
    "relative_jitter",
    "whiten",
]
