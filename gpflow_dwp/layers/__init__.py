"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import Description, GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.declared_sizes import DeclaredSizes
from gpflow_dwp.layers.encoder import Encoder, FreeEncoder, NetworkEncoder
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inducing_points import as_inducing_points
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.latent_variable import LatentDraw, LatentVariableLayer, append_latents
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
    "DeclaredSizes",
    "Description",
    "Encoder",
    "FreeEncoder",
    "GaussianDraw",
    "GlobalInducingGPLayer",
    "GlobalInducingGramLayer",
    "GramDraw",
    "GramLayer",
    "InducingPath",
    "InverseWishartLayer",
    "LatentDraw",
    "LatentVariableLayer",
    "Mixing",
    "NetworkEncoder",
    "OutputLayer",
    "PosteriorFamily",
    "RegressionGPLayer",
    "ScaleMixture",
    "TargetNoise",
    "WishartLayer",
    "WishartPosterior",
    "ZeroNoise",
    "append_latents",
    "as_inducing_points",
    "propagate_jointly",
    "propagate_targets",
    "sample_gram_matrices",
    "sample_inducing_path",
]
