"""Layers of deep kernel processes, and the fold that joins them."""

from gpflow_dwp.layers.base import Description, GaussianPosterior, GramDraw, GramLayer, OutputLayer
from gpflow_dwp.layers.global_inducing import GlobalInducingGPLayer
from gpflow_dwp.layers.global_inducing_gram import GlobalInducingGramLayer
from gpflow_dwp.layers.inverse_wishart import InverseWishartLayer
from gpflow_dwp.layers.nearest_neighbours import NearestNeighbourGPLayer
from gpflow_dwp.layers.regression import RegressionGPLayer
from gpflow_dwp.layers.skip import SkipLayer
from gpflow_dwp.layers.wishart import WishartLayer
from gpflow_dwp.layers.wishart_posterior import ScaleMixture, WishartPosterior
from gpflow_dwp.random import TargetNoise

__all__ = [
    "Description",
    "GaussianPosterior",
    "GlobalInducingGPLayer",
    "GlobalInducingGramLayer",
    "GramDraw",
    "GramLayer",
    "InverseWishartLayer",
    "NearestNeighbourGPLayer",
    "OutputLayer",
    "RegressionGPLayer",
    "ScaleMixture",
    "SkipLayer",
    "TargetNoise",
    "WishartLayer",
    "WishartPosterior",
]
