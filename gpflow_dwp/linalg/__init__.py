"""Linear algebra of covariances, each function with a gradient of its own."""

from gpflow_dwp.linalg.conditionals import (
    conditional_moments,
    outer_product,
    projected_moments,
    pseudo_target_posterior,
)
from gpflow_dwp.linalg.factorisation import (
    Factorised,
    cholesky,
    factorise,
    inverse_and_log_det,
    relative_jitter,
)
from gpflow_dwp.linalg.triangular import color, relative_precision, whiten

__all__ = [
    "Factorised",
    "cholesky",
    "color",
    "conditional_moments",
    "factorise",
    "inverse_and_log_det",
    "outer_product",
    "projected_moments",
    "pseudo_target_posterior",
    "relative_jitter",
    "relative_precision",
    "whiten",
]
