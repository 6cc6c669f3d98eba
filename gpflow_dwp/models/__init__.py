"""Models with GPflow's contract, and builders that hold their defaults."""

from gpflow_dwp.models._assembly import InducingChoice, InducingInputs
from gpflow_dwp.models._named_kernels import KERNELS, make_kernels, positive_by_exp
from gpflow_dwp.models.accepted_observations import (
    AcceptedObservations,
    accepted_observations,
    count_columns,
    count_functions,
    is_accepted,
    observes_entries,
)
from gpflow_dwp.models.base import DeepKernelProcess
from gpflow_dwp.models.builders import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.models.configuration import from_config, to_config
from gpflow_dwp.models.data_checks import (
    Batch,
    TakesData,
    as_misfit,
    check_batch,
    check_data,
    check_dataset,
    check_inputs,
    check_observations,
)
from gpflow_dwp.models.deep_gaussian_process import DeepGaussianProcess
from gpflow_dwp.models.deep_inverse_wishart_process import DeepInverseWishartProcess
from gpflow_dwp.models.deep_wishart_process import DeepWishartProcess
from gpflow_dwp.models.failure import describe_non_finite
from gpflow_dwp.models.function_draws import FunctionDraws
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.models.observations import sample_observations
from gpflow_dwp.models.output_posterior import OutputPosterior, suitable_output
from gpflow_dwp.models.posterior import DeepPosterior
from gpflow_dwp.models.predictive import (
    copies_expected_log_likelihoods,
    expected_log_likelihoods,
    mixture_covariance,
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
    warped_moments,
)
from gpflow_dwp.models.saving import (
    load_model,
    model_from_bytes,
    model_to_bytes,
    save_model,
)
from gpflow_dwp.models.scales import warn_of_scales
from gpflow_dwp.models.summary import ModelSummary, PartSummary, collapsed_layers, model_summary
from gpflow_dwp.models.variational import PosteriorDraws, VariationalModel

__all__ = [
    "KERNELS",
    "AcceptedObservations",
    "Batch",
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepKernelProcess",
    "DeepPosterior",
    "DeepWishartProcess",
    "FunctionDraws",
    "InducingChoice",
    "InducingInputs",
    "MixturePosterior",
    "ModelSummary",
    "OutputPosterior",
    "PartSummary",
    "PosteriorDraws",
    "TakesData",
    "VariationalModel",
    "accepted_observations",
    "as_misfit",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
    "check_batch",
    "check_data",
    "check_dataset",
    "check_inputs",
    "check_observations",
    "collapsed_layers",
    "copies_expected_log_likelihoods",
    "count_columns",
    "count_functions",
    "describe_non_finite",
    "expected_log_likelihoods",
    "from_config",
    "is_accepted",
    "load_model",
    "make_kernels",
    "mixture_covariance",
    "mixture_moments",
    "model_from_bytes",
    "model_summary",
    "model_to_bytes",
    "observes_entries",
    "positive_by_exp",
    "predictive_log_densities",
    "predictive_moments",
    "sample_observations",
    "save_model",
    "suitable_output",
    "to_config",
    "warn_of_scales",
    "warped_moments",
]
