"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import Description, GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.encoder import Encoder, FreeEncoder, NetworkEncoder
from gpflow_dwp.layers.gamma_gaussian import GammaGaussian
from gpflow_dwp.layers.gamma_precision import GammaPrecision
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inducing_points import as_inducing_points
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.latent_variable import LatentDraw, LatentVariableLayer, append_latents
from gpflow_dwp.layers.local_inducing import LocalInducingGPLayer
from gpflow_dwp.layers.local_propagation import (
    ImportanceCopies,
    LocalLayer,
    propagate_copies,
    propagate_from_prior,
)
from gpflow_dwp.layers.matrix_gaussian import (
    CovarianceFamily,
    MatrixGaussianLayer,
    Preactivation,
    dropout_kl,
)
from gpflow_dwp.layers.noise import TargetNoise, ZeroNoise
from gpflow_dwp.layers.propagation import (
    InducingPath,
    propagate_jointly,
    propagate_targets,
    sample_gram_matrices,
    sample_inducing_path,
)
from gpflow_dwp.layers.regression import RegressionGPLayer
from gpflow_dwp.layers.scale_mixture import ScaleMixture
from gpflow_dwp.layers.wishart import WishartLayer
from gpflow_dwp.layers.wishart_posterior import Mixing, PosteriorFamily, WishartPosterior

__all__ = [
    "CovarianceFamily",
    "Description",
    "Encoder",
    "FreeEncoder",
    "GammaGaussian",
    "GammaPrecision",
    "GaussianDraw",
    "GlobalInducingGPLayer",
    "GlobalInducingGramLayer",
    "GramDraw",
    "GramLayer",
    "ImportanceCopies",
    "InducingPath",
    "InverseWishartLayer",
    "LatentDraw",
    "LatentVariableLayer",
    "LocalInducingGPLayer",
    "LocalLayer",
    "MatrixGaussianLayer",
    "Mixing",
    "NetworkEncoder",
    "OutputLayer",
    "PosteriorFamily",
    "Preactivation",
    "RegressionGPLayer",
    "ScaleMixture",
    "TargetNoise",
    "WishartLayer",
    "WishartPosterior",
    "ZeroNoise",
    "append_latents",
    "as_inducing_points",
    "dropout_kl",
    "propagate_copies",
    "propagate_from_prior",
    "propagate_jointly",
    "propagate_targets",
    "sample_gram_matrices",
    "sample_inducing_path",
]
