"""Likelihoods that GPflow has not, noise in a function of the observations; and those of labels."""

from gpflow_dwp.likelihoods.labels import likelihood_of_labels
from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import (
    Warp,
    WarpedGaussian,
    unwarped_moments,
    warp_function,
    warp_of,
)
from gpflow_dwp.likelihoods.warped_student_t import Noise, WarpedStudentT

__all__ = [
    "Noise",
    "SinhArcsinh",
    "Warp",
    "WarpedGaussian",
    "WarpedStudentT",
    "likelihood_of_labels",
    "unwarped_moments",
    "warp_function",
    "warp_of",
]
