"""Deep Gaussian processes with latent variables, and inducing inputs in every layer.

Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes with importance-weighted
variational inference" (2019).
"""

from gpflow_dwp.latent_variable_deep_gp.latent_variable import (
    Encoder,
    LatentVariableLayer,
    NetworkEncoder,
)
from gpflow_dwp.latent_variable_deep_gp.layer import LocalInducingGPLayer
from gpflow_dwp.latent_variable_deep_gp.model import (
    LatentVariableDeepGP,
    build_latent_variable_deep_gp,
)
from gpflow_dwp.latent_variable_deep_gp.process import LatentVariableProcess

__all__ = [
    "Encoder",
    "LatentVariableDeepGP",
    "LatentVariableLayer",
    "LatentVariableProcess",
    "LocalInducingGPLayer",
    "NetworkEncoder",
    "build_latent_variable_deep_gp",
]
