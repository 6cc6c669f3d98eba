"""Every public module says what is public: ``__all__`` is static, sorted, complete and true."""

from __future__ import annotations

import importlib

import pytest
from package_source import MODULES, PACKAGE, ROOT, SourceModule

# The command line and the lab are programs, not a library.
PROGRAMS = ("cli", "lab")
PUBLIC_MODULES = [module for module in MODULES if module.is_public]
SUBPACKAGES = [
    module
    for module in PUBLIC_MODULES
    # The package itself exports a choice.
    if module.is_package and module.name != PACKAGE and module.group not in PROGRAMS
]
TOP_MODULES = [
    module for module in PUBLIC_MODULES if len(module.parts) == 2 and module.group not in PROGRAMS
]


def exported(module: SourceModule) -> list[str]:
    names = module.exported()
    assert names is not None, f"{module.path}: __all__ must be one plain list of strings"
    return names


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then everything else, as ruff's RUF022 has it."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=repr)
def test_all_is_static_sorted_and_without_repetition(module: SourceModule) -> None:
    names = exported(module)

    assert names == sorted(names, key=order)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=repr)
def test_all_is_complete(module: SourceModule) -> None:
    assert module.public_definitions() <= set(exported(module))


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=repr)
def test_every_listed_name_exists(module: SourceModule) -> None:
    imported = importlib.import_module(module.name)

    for name in exported(module):
        assert hasattr(imported, name), f"{module.name}.{name}"


@pytest.mark.parametrize("package", SUBPACKAGES, ids=repr)
def test_a_package_exports_what_its_modules_export(package: SourceModule) -> None:
    inside = {
        name
        for module in PUBLIC_MODULES
        if module.parts[:-1] == package.parts
        for name in exported(module)
    }

    assert inside <= set(exported(package))


@pytest.mark.parametrize("module", TOP_MODULES, ids=repr)
def test_the_reference_has_a_page_of_each_module(module: SourceModule) -> None:
    page = ROOT / "notebooks" / "reference" / f"{module.group}.md"

    assert f"automodule:: {module.name}\n" in page.read_text(encoding="utf-8")
