"""Habits that no linter holds: short files, documented public names, errors in place of asserts."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect

from package_source import MODULES

LONGEST_FILE = 400


def test_no_assert_in_package_code() -> None:
    """An error names the argument instead."""
    assert not [
        f"{module.path}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert)
    ]


def test_no_long_file() -> None:
    assert not [m for m in MODULES if len(m.text.splitlines()) > LONGEST_FILE]


def test_every_module_has_a_docstring() -> None:
    assert not [module for module in MODULES if not ast.get_docstring(module.tree)]


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


def test_public_names_have_docstrings() -> None:
    for module in (module for module in MODULES if module.is_public):
        imported = importlib.import_module(module.name)
        for name in sorted(module.public_definitions()):
            value = getattr(imported, name)
            # A dataclass and a NamedTuple get a docstring by themselves: their signature.
            own = value.__doc__ or ""
            assert own and not own.startswith(f"{name}("), f"{module.name}.{name}"
            if inspect.isclass(value):
                assert not undocumented_members(value), f"{module.name}.{name}"
