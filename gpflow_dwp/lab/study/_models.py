"""The models that a study compares, by their names in its tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    VariationalModel,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)

__all__ = ["STUDY_MODELS", "StudyModel"]


class StudyModel(NamedTuple):
    """How a model is built."""

    builder: Callable[..., VariationalModel]
    arguments: Mapping[str, Any] = {}

    @property
    def own_depth(self) -> int | None:
        """The number of layers that the name says, if it does."""
        architecture = self.arguments.get("architecture")
        return None if architecture is None else architecture.split("-").count("GP")

    @property
    def has_natural_parameters(self) -> bool:
        """Whether the output layer has the parameters that natural gradients move."""
        return self.builder is build_latent_variable_deep_gp

    def accepts(self, argument: str) -> bool:
        """Whether the builder has an argument that the model does not set."""
        accepted = inspect.signature(self.builder).parameters
        return argument in accepted and argument not in self.arguments


STUDY_MODELS: dict[str, StudyModel] = {
    "DGP": StudyModel(build_deep_gaussian_process),
    "DIWP": StudyModel(build_deep_inverse_wishart_process),
    "GW": StudyModel(build_deep_wishart_process, {"posterior": "GW"}),
    "A": StudyModel(build_deep_wishart_process, {"posterior": "A"}),
    "AB": StudyModel(build_deep_wishart_process, {"posterior": "AB"}),
    "VMG": StudyModel(build_matrix_gaussian_network),
    **{
        name: StudyModel(build_latent_variable_deep_gp, {"architecture": name})
        for name in ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP")
    },
    "LV-DWP": StudyModel(build_deep_wishart_process, {"posterior": "A", "latent_dim": 1}),
}
"""The models that can be compared: the deep GP, the deep inverse Wishart process, deep Wishart
processes by their posterior family, and the matrix-Gaussian network; deep GPs with latent variables
(LV) by their layers, bottom first; and a deep Wishart process, posterior A, above latent variables.
"""
