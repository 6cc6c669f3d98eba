"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import GaussianDraw, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.propagation import InducingPath, propagate_targets, sample_inducing_path
from gpflow_dwp.layers.scale_mixture import ScaleMixture
from gpflow_dwp.layers.wishart import WishartLayer
from gpflow_dwp.layers.wishart_posterior import Mixing, PosteriorFamily, WishartPosterior

__all__ = [
    "GaussianDraw",
    "GlobalInducingGPLayer",
    "GlobalInducingGramLayer",
    "GramDraw",
    "GramLayer",
    "InducingPath",
    "InverseWishartLayer",
    "Mixing",
    "OutputLayer",
    "PosteriorFamily",
    "ScaleMixture",
    "WishartLayer",
    "WishartPosterior",
    "propagate_targets",
    "sample_inducing_path",
]
