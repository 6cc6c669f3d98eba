"""The examples in docstrings say what happens."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest
from package_source import MODULES, SourceModule

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too.

    The standard finder takes a function for another module's if its wrapper is, which every
    function under ``check_shapes`` has.
    """

    def _from_module(self, module: ModuleType | None, object: Any) -> bool:  # noqa: A002
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]


def written_examples(module: SourceModule) -> int:
    """How many examples the docstrings of a file hold."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(n) for n in ast.walk(module.tree) if isinstance(n, documented)]
    return sum(len(doctest.DocTestParser().get_examples(text)) for text in docstrings if text)


MODULES_WITH_EXAMPLES = [module for module in MODULES if written_examples(module)]


@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES, ids=repr)
def test_examples(module: SourceModule) -> None:
    imported = importlib.import_module(module.name)
    tests = Finder(exclude_empty=True).find(imported, module.name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []

    for test in tests:
        runner.run(test, out=report.append)

    assert sum(len(test.examples) for test in tests) == written_examples(module)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
