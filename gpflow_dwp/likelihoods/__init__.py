"""Likelihoods that GPflow has not: noise in functions of observations and inputs; and of labels."""

from gpflow_dwp.likelihoods.heteroskedastic_gaussian import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.labels import likelihood_of_labels
from gpflow_dwp.likelihoods.noise import Noise, NormalMixture
from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import (
    Warp,
    WarpedGaussian,
    unwarped_moments,
    warp_function,
    warp_of,
)
from gpflow_dwp.likelihoods.warped_student_t import WarpedStudentT

__all__ = [
    "HeteroskedasticGaussian",
    "Noise",
    "NormalMixture",
    "SinhArcsinh",
    "Warp",
    "WarpedGaussian",
    "WarpedStudentT",
    "likelihood_of_labels",
    "unwarped_moments",
    "warp_function",
    "warp_of",
]
