"""The package as source text: what the tests of its structure read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

__all__ = ["MODULES", "PACKAGE", "ROOT", "ImportedName", "SourceModule"]

PACKAGE = "gpflow_dwp"
ROOT = Path(__file__).resolve().parents[1]


class ImportedName(NamedTuple):
    """One name that a module imports.

    :param module: The absolute name of the module it comes from, or of the module itself.
    :param name: The name in that module; None for ``import module``.
    :param line: Where.
    """

    module: str
    name: str | None
    line: int


class SourceModule:
    """One file of the package, parsed and not imported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_package = path.name == "__init__.py"
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        self.parts = parts[:-1] if self.is_package else parts
        self.name = ".".join(self.parts)
        self.package = self.parts if self.is_package else self.parts[:-1]

    def __repr__(self) -> str:
        return self.name

    @property
    def is_public(self) -> bool:
        """Whether no part of its name starts with an underscore (``__main__`` is private, too)."""
        return not any(part.startswith("_") for part in self.parts)

    @property
    def group(self) -> str | None:
        """First part of its name below the package: ``layers``; None for the package itself."""
        return self.parts[1] if len(self.parts) > 1 else None

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.text, filename=str(self.path))

    def public_definitions(self) -> set[str]:
        """Public classes and functions that are defined at the top of the file."""
        definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        return {
            node.name
            for node in self.tree.body
            if isinstance(node, definitions) and not node.name.startswith("_")
        }

    def exported(self) -> list[str] | None:
        """``__all__``, if the file sets it once and to a plain list of strings; else None."""
        values = [
            node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        ]
        if len(values) != 1 or not isinstance(values[0], ast.List):
            return None
        names = [item.value for item in values[0].elts if isinstance(item, ast.Constant)]
        is_plain = len(names) == len(values[0].elts) and all(isinstance(n, str) for n in names)
        return names if is_plain else None

    def imports(self, *, at_once: bool = False) -> Iterator[ImportedName]:
        """What the file imports, anywhere in it or as soon as it is imported itself."""
        for node in self.tree.body if at_once else ast.walk(self.tree):
            yield from self._imported_by(node)

    def _imported_by(self, node: ast.AST) -> Iterator[ImportedName]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield ImportedName(alias.name, None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                above = self.package[: len(self.package) - node.level + 1]
                module = ".".join([*above, *([module] if module else [])])
            for alias in node.names:
                yield ImportedName(module, alias.name, node.lineno)


MODULES = tuple(SourceModule(path) for path in sorted((ROOT / PACKAGE).rglob("*.py")))
