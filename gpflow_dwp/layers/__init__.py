"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.encoder import Encoder, FreeEncoder, NetworkEncoder
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.latent_variable import LatentDraw, LatentVariableLayer, append_latents
from gpflow_dwp.layers.local_inducing import LocalInducingGPLayer
from gpflow_dwp.layers.local_propagation import (
    ImportanceCopies,
    LocalLayer,
    propagate_copies,
    propagate_from_prior,
)
from gpflow_dwp.layers.propagation import InducingPath, propagate_targets, sample_inducing_path
from gpflow_dwp.layers.scale_mixture import ScaleMixture
from gpflow_dwp.layers.wishart import WishartLayer
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily, WishartPosterior

__all__ = [
    "Encoder",
    "FreeEncoder",
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
    "NetworkEncoder",
    "OutputLayer",
    "PosteriorFamily",
    "ScaleMixture",
    "WishartLayer",
    "WishartPosterior",
    "append_latents",
    "propagate_copies",
    "propagate_from_prior",
    "propagate_targets",
    "sample_inducing_path",
]
