"""What saved models may still call classes that have moved since."""

from __future__ import annotations

__all__ = ["present_name"]

_MOVED = {
    "gpflow_dwp.layers.GammaGaussian": "gpflow_dwp.likelihoods.GammaGaussian",
    "gpflow_dwp.layers.LocalInducingGPLayer": (
        "gpflow_dwp.latent_variable_deep_gp.LocalInducingGPLayer"
    ),
    "gpflow_dwp.layers.MatrixGaussianLayer": "gpflow_dwp.matrix_gaussian.MatrixGaussianLayer",
    "gpflow_dwp.models.LatentVariableDeepGP": (
        "gpflow_dwp.latent_variable_deep_gp.LatentVariableDeepGP"
    ),
    "gpflow_dwp.models.MatrixGaussianNetwork": "gpflow_dwp.matrix_gaussian.MatrixGaussianNetwork",
}


def present_name(name: str) -> str:
    """The full name of a class that is described by this one.

    :param name: As a description has it, of whatever age.
    """
    return _MOVED.get(name, name)
