"""Deep Wishart processes on GPflow.

Build a model with :func:`build_deep_wishart_process` or one of its siblings, train it with
:func:`fit`, keep it with :func:`save_model`. The parts that models are made of are in the
subpackages ``bijectors``, ``distributions``, ``kernels``, ``layers``, ``models`` and ``training``.

Names are imported when they are first used, so that the command line's help does not wait for
TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if find_spec("gpflow") is None:
    raise ImportError(
        "gpflow_dwp needs GPflow, which from Python 3.13 on is installed by a command of its own: "
        'python -m pip install --no-deps "gpflow>=2.11,<2.12"',
        name="gpflow",
    )

if TYPE_CHECKING:
    from gpflow_dwp.latent_variable_deep_gp import (
        LatentVariableDeepGP,
        build_latent_variable_deep_gp,
    )
    from gpflow_dwp.matrix_gaussian import MatrixGaussianNetwork, build_matrix_gaussian_network
    from gpflow_dwp.models import (
        DeepGaussianProcess,
        DeepInverseWishartProcess,
        DeepWishartProcess,
        build_deep_gaussian_process,
        build_deep_inverse_wishart_process,
        build_deep_wishart_process,
        load_model,
        save_model,
    )
    from gpflow_dwp.papers import citation
    from gpflow_dwp.training.fit import fit

__all__ = [
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepWishartProcess",
    "LatentVariableDeepGP",
    "MatrixGaussianNetwork",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
    "build_latent_variable_deep_gp",
    "build_matrix_gaussian_network",
    "citation",
    "fit",
    "load_model",
    "save_model",
]

_SUBPACKAGES = {module.name for module in iter_modules(__path__) if module.ispkg}
# Where the names are that are not in ``models``.
_HOMES = {
    "LatentVariableDeepGP": "latent_variable_deep_gp",
    "MatrixGaussianNetwork": "matrix_gaussian",
    "build_latent_variable_deep_gp": "latent_variable_deep_gp",
    "build_matrix_gaussian_network": "matrix_gaussian",
    "citation": "papers",
    "fit": "training",
}


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
