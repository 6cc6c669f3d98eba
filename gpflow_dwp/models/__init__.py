"""Models with GPflow's contract, and builders that hold their defaults."""

from gpflow_dwp.models.base import DeepKernelProcess
from gpflow_dwp.models.builders import (
    KERNELS,
    InducingChoice,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    make_kernels,
)
from gpflow_dwp.models.configuration import from_config, to_config
from gpflow_dwp.models.deep_gaussian_process import DeepGaussianProcess
from gpflow_dwp.models.deep_inverse_wishart_process import DeepInverseWishartProcess
from gpflow_dwp.models.deep_wishart_process import DeepWishartProcess
from gpflow_dwp.models.posterior import DeepPosterior
from gpflow_dwp.models.predictive import (
    expected_log_likelihoods,
    mixture_covariance,
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
)
from gpflow_dwp.models.saving import load_model, save_model

__all__ = [
    "KERNELS",
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepKernelProcess",
    "DeepPosterior",
    "DeepWishartProcess",
    "InducingChoice",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
    "expected_log_likelihoods",
    "from_config",
    "load_model",
    "make_kernels",
    "mixture_covariance",
    "mixture_moments",
    "predictive_log_densities",
    "predictive_moments",
    "save_model",
    "to_config",
]
