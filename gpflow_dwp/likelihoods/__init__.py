"""Likelihoods that GPflow has not: Gaussian noise in a function of the observations."""

from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import (
    Warp,
    WarpedGaussian,
    unwarped_moments,
    warp_function,
    warp_of,
)

__all__ = [
    "SinhArcsinh",
    "Warp",
    "WarpedGaussian",
    "unwarped_moments",
    "warp_function",
    "warp_of",
]
