"""Classes of this package by the full names that saved models have for them."""

from __future__ import annotations

import importlib
import re
from typing import Any

__all__ = ["find_own", "public_name"]

_FULL_NAME = re.compile(r"gpflow_dwp\.([a-z]\w*)\.\w+")
# What saved models may still call classes that have moved since.
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


def public_name(cls: type) -> str | None:
    """The full name under which one of this package's rooms exports a class, if one does.

    :param cls: Any class.
    """
    room = _FULL_NAME.match(f"{cls.__module__}.{cls.__name__}")
    name = f"gpflow_dwp.{room[1]}.{cls.__name__}" if room else ""
    return name if find_own(name) is cls else None


def find_own(name: str) -> Any:
    """What one of this package's rooms exports under a full name; None where there is none.

    :param name: As a description has it, of whatever age.
    """
    room = _FULL_NAME.fullmatch(_MOVED.get(name, name))
    if room is None:
        return None
    try:
        module = importlib.import_module(f"gpflow_dwp.{room[1]}")
    except ImportError:
        return None
    class_name = name.rpartition(".")[2]
    return getattr(module, class_name) if class_name in getattr(module, "__all__", ()) else None
