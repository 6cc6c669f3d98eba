"""Models with GPflow's contract, and builders that hold their defaults."""

from gpflow_dwp.likelihoods.observed import AcceptedObservations
from gpflow_dwp.models.architecture import Architecture
from gpflow_dwp.models.builders import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.models.deep_kernel_process import (
    DeepGaussianProcess,
    DeepInverseWishartProcess,
    DeepKernelProcess,
    DeepWishartProcess,
)
from gpflow_dwp.models.deep_posterior import DeepPosterior
from gpflow_dwp.models.function_draws import FunctionDraws
from gpflow_dwp.models.named_kernels import KERNELS
from gpflow_dwp.models.saving import load_model, model_from_bytes, model_to_bytes, save_model
from gpflow_dwp.models.summary import model_summary
from gpflow_dwp.models.variational import VariationalModel

__all__ = [
    "KERNELS",
    "AcceptedObservations",
    "Architecture",
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepKernelProcess",
    "DeepPosterior",
    "DeepWishartProcess",
    "FunctionDraws",
    "VariationalModel",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
    "load_model",
    "model_from_bytes",
    "model_summary",
    "model_to_bytes",
    "save_model",
]
