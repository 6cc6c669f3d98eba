"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.gamma_gaussian import GammaGaussian
from gpflow_dwp.layers.gamma_precision import GammaPrecision
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.matrix_gaussian import (
    CovarianceFamily,
    MatrixGaussianLayer,
    Preactivation,
    dropout_kl,
)
from gpflow_dwp.layers.propagation import InducingPath, propagate_targets, sample_inducing_path
from gpflow_dwp.layers.scale_mixture import ScaleMixture
from gpflow_dwp.layers.wishart import WishartLayer
from gpflow_dwp.layers.wishart_posterior import Mixing, PosteriorFamily, WishartPosterior

__all__ = [
    "CovarianceFamily",
    "GammaGaussian",
    "GammaPrecision",
    "GaussianDraw",
    "GlobalInducingGPLayer",
    "GlobalInducingGramLayer",
    "GramDraw",
    "GramLayer",
    "InducingPath",
    "InverseWishartLayer",
    "MatrixGaussianLayer",
    "Mixing",
    "OutputLayer",
    "PosteriorFamily",
    "Preactivation",
    "ScaleMixture",
    "WishartLayer",
    "WishartPosterior",
    "dropout_kl",
    "propagate_targets",
    "sample_inducing_path",
]
