"""Likelihoods that GPflow has not: noise in functions of the observations and of the inputs."""

from gpflow_dwp.likelihoods.heteroskedastic_gaussian import HeteroskedasticGaussian
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
    "unwarped_moments",
    "warp_function",
    "warp_of",
]
