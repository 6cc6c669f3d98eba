"""Likelihoods that GPflow has not, and the one for labels."""

from gpflow_dwp.likelihoods.gamma_gaussian import GammaGaussian
from gpflow_dwp.likelihoods.gamma_precision import GammaPrecision
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
    "GammaGaussian",
    "GammaPrecision",
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
