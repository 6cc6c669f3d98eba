"""Packages: those that only a part of the users need, named when missing, and all versions."""

from __future__ import annotations

import contextlib
import platform
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["check_optional", "import_optional", "list_versions"]

_VERSIONED = (
    *("gpflow-dwp", "gpflow", "tensorflow", "tensorflow-probability", "tf_keras"),
    *("numpy", "scipy", "pandas", "scikit-learn"),
)


def import_optional(module: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    :param module: Full name of the module, such as ``"sklearn.linear_model"``.
    :param extra: The extra of this package that brings it, such as ``"cli"``.
    :return: The module.
    :raises ImportError: If the package is not installed; the message says how to install it. An
        installed package that fails to import keeps its own error.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (package, module):
            raise
        raise _missing(package, extra) from error


def check_optional(package: str, extra: str) -> None:
    """Refuse, as :func:`import_optional` does, without importing the package."""
    try:
        is_there = find_spec(package) is not None
    except ValueError:  # what sys.modules holds in its place has no spec
        is_there = False
    if not is_there:
        raise _missing(package, extra)


def list_versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of those that numbers depend on.

    Of what is imported they are the module's: TensorFlow is also installed as tensorflow-cpu.
    """
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    found = {"python": platform.python_version()}
    for name in _VERSIONED:
        module = sys.modules.get(name.replace("-", "_"))
        with contextlib.suppress(PackageNotFoundError):
            found[name] = getattr(module, "__version__", None) or version(name)
    return found


def _missing(package: str, extra: str) -> ImportError:
    return ImportError(
        f"{package} is needed here and is not installed: "
        f'python -m pip install "gpflow-dwp[{extra}]"',
        name=package,
    )
