"""What is public: each room exports a choice, documented, and the reference has all of it.

The ``__all__`` of a module within a room says what the other rooms may use of it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re

import pytest
from package_source import MODULES, ROOT, SourceModule

# The command line is a program, not a library.
PROGRAMS = ("cli",)
PUBLIC_MODULES = [module for module in MODULES if module.is_public]
# What the rooms share and a user does not type, as the build of the reference has it.
_BUILD = (ROOT / "ci" / "docs" / "conf.py").read_text(encoding="utf-8")
_FOUND = re.search(r"^PRIVATE_ROOMS = (\(.*?^\))$", _BUILD, re.DOTALL | re.MULTILINE)
assert _FOUND is not None
SHARED = tuple(room for room in ast.literal_eval(_FOUND[1]) if room not in PROGRAMS)
TOP_MODULES = [
    module for module in PUBLIC_MODULES if len(module.parts) == 2 and module.group not in PROGRAMS
]
SUBPACKAGES = [module for module in TOP_MODULES if module.is_package and module.group not in SHARED]
LIBRARY = [module for module in TOP_MODULES if not module.is_package and module.group not in SHARED]
MOST_NAMES = 161
LONGEST_FILE = 400
# A letter of the glossary, and perhaps a shape, in place of a description.
LETTER_ALONE = re.compile(r":param (\w+): \w'?(?:, \[[^\]]*\])?\.$", re.MULTILINE)


def exported(module: SourceModule) -> list[str]:
    names = module.exported()
    assert names is not None, f"{module.path}: __all__ must be one plain list of strings"
    return names


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then everything else, as ruff's RUF022 has it."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def test_all_is_static_sorted_and_complete() -> None:
    for module in PUBLIC_MODULES:
        names = exported(module)
        assert names == sorted({*names}, key=order), module
        assert module.public_definitions() <= {*names}, module


def test_what_is_public_can_be_looked_through() -> None:
    """Catches helpers that become part of the interface by and by."""
    public = {name for module in (*SUBPACKAGES, *LIBRARY) for name in exported(module)}
    assert len(public) <= MOST_NAMES


@pytest.mark.parametrize("module", [*SUBPACKAGES, *LIBRARY], ids=repr)
def test_each_name_stands_in_the_part_of_its_module(module: SourceModule) -> None:
    """Catches a new public name that no group of the reference lists."""
    pages = sorted((ROOT / "notebooks" / "reference").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    _, found, part = text.partition(f"automodule:: {module.name}\n")
    assert found
    listed = re.findall(r"^   (\w+)$", part.partition("automodule::")[0], re.MULTILINE)
    assert sorted(listed) == sorted(exported(module))


def test_parameters_are_described_by_more_than_a_letter() -> None:
    """Catches ``:param num_data: N.``, which says nothing to whoever does not know the letters."""
    assert not [found for module in MODULES for found in LETTER_ALONE.findall(module.text)]


def test_every_module_is_short_has_a_docstring_and_asserts_nothing() -> None:
    """An error names the argument instead."""
    for module in MODULES:
        assert len(module.text.splitlines()) <= LONGEST_FILE, module
        assert ast.get_docstring(module.tree), module
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(module.tree)), module


def undocumented_members(cls: type) -> list[str]:
    """Public methods and properties of a class that no class of its MRO documents."""
    kinds = (classmethod, staticmethod, property, functools.cached_property)
    return [
        name
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, kinds))
        and not any(getattr(vars(c).get(name), "__doc__", None) for c in cls.__mro__)
    ]


def test_public_names_exist_and_have_docstrings() -> None:
    for module in PUBLIC_MODULES:
        imported = importlib.import_module(module.name)
        assert all(hasattr(imported, name) for name in exported(module)), module
        for name in sorted(module.public_definitions()):
            value = getattr(imported, name)
            # A dataclass and a NamedTuple get a docstring by themselves: their signature.
            own = value.__doc__ or ""
            assert own and not own.startswith(f"{name}("), f"{module.name}.{name}"
            if inspect.isclass(value):
                assert not undocumented_members(value), f"{module.name}.{name}"
