"""Packages that only a part of the users need: imported where they are used, named when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["import_optional"]


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
        raise ImportError(
            f"{package} is needed here and is not installed: pip install gpflow-dwp[{extra}]",
            name=package,
        ) from error
