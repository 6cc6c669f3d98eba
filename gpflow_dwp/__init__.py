"""Deep Wishart processes on GPflow.

Build a model with :func:`build_deep_wishart_process` or one of its siblings, train it with
:func:`fit`, keep it with :func:`save_model`. The parts that models are made of are in the
subpackages ``bijectors``, ``distributions``, ``kernels``, ``layers``, ``models`` and ``training``.

Names are imported when they are first used, so that the command line's help does not wait for
TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpflow_dwp.models import (
        DeepGaussianProcess,
        DeepInverseWishartProcess,
        DeepWishartProcess,
        LatentVariableDeepGP,
        MatrixGaussianNetwork,
        build_deep_gaussian_process,
        build_deep_inverse_wishart_process,
        build_deep_wishart_process,
        build_latent_variable_deep_gp,
        build_matrix_gaussian_network,
        load_model,
        save_model,
    )
    from gpflow_dwp.objectives import Estimator
    from gpflow_dwp.training.fit import fit

__all__ = [
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepWishartProcess",
    "Estimator",
    "LatentVariableDeepGP",
    "MatrixGaussianNetwork",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
    "build_latent_variable_deep_gp",
    "build_matrix_gaussian_network",
    "fit",
    "load_model",
    "save_model",
]

_SUBPACKAGES = frozenset(
    {
        "bijectors",
        "data",
        "distributions",
        "estimator",
        "evaluation",
        "iterates",
        "kernels",
        "layers",
        "models",
        "selection",
        "serving",
        "training",
    }
)


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        home = {"Estimator": "objectives", "fit": "training"}.get(name, "models")
        return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
