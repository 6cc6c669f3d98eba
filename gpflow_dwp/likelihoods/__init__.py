"""Likelihoods that GPflow has not, and the one for labels."""

from gpflow_dwp.likelihoods.gamma_gaussian import GammaGaussian
from gpflow_dwp.likelihoods.heteroskedastic_gaussian import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.named import LikelihoodName
from gpflow_dwp.likelihoods.normal_mixture import NormalMixture
from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import Warp, WarpedGaussian
from gpflow_dwp.likelihoods.warped_student_t import WarpedStudentT

__all__ = [
    "GammaGaussian",
    "HeteroskedasticGaussian",
    "LikelihoodName",
    "NormalMixture",
    "SinhArcsinh",
    "Warp",
    "WarpedGaussian",
    "WarpedStudentT",
]
