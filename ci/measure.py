"""Measure a package by its syntax trees: ``python ci/measure.py [package] [tests]``.

Prints Markdown. A function is what ``def`` defines, be it a method or inside another function. Its
lines are those from ``def`` to its end, its parameters all but ``self`` and ``cls``; it is public
if its own name does not begin with an underscore. Of classes all count. Public names are those in
``__all__`` of the package and of the packages directly below it; imports are those that importing
a module runs, without what stands under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import argparse
import ast
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LONG_FUNCTION = 60
MANY_PARAMETERS = 5

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """One file: the parts of its dotted name, its text, and its syntax tree."""

    parts: tuple[str, ...]
    is_package: bool
    num_lines: int
    tree: ast.Module

    @property
    def name(self) -> str:
        return ".".join(self.parts)


def read_package(folder: Path) -> list[Module]:
    """Parse all files below a folder, whose name is that of the package."""
    modules = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(folder.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = parts[:-1] if is_package else parts
        modules.append(Module(name, is_package, len(text.splitlines()), ast.parse(text)))
    return modules


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters but ``self`` and ``cls``; ``*args`` and ``**kwargs`` count for one each."""
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return sum(each.arg not in ("self", "cls") for each in names)


def exported(module: Module) -> int:
    """How many names a module's ``__all__`` lists."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(getattr(node.value, "elts", []))
    return 0


def imported_when_imported(module: Module, names: set[str]) -> set[str]:
    """Modules of the package that importing this one imports by its own statements."""
    found = set()
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = len(module.parts) + module.is_package - node.level
            base = module.parts[:above] if node.level else ()
            source = ".".join([*base, *([node.module] if node.module else [])])
            # A name may be a module itself.
            found |= {
                inner if (inner := f"{source}.{alias.name}") in names else source
                for alias in node.names
            }
        waiting += ast.iter_child_nodes(node)
    return found & names - {module.name}


def import_cycles(modules: Sequence[Module]) -> list[list[str]]:
    """Groups of modules that import each other: strongly connected components of two and more."""
    names = {module.name for module in modules}
    graph = {module.name: imported_when_imported(module, names) for module in modules}
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted(map(list, groups))


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    reached, waiting = set(), list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph[name]
    return reached


def rank(numbers: Sequence[int], share: float) -> int:
    """The smallest number that this share of the numbers does not exceed; 0 of none."""
    return sorted(numbers)[max(math.ceil(share * len(numbers)), 1) - 1] if numbers else 0


def documented(nodes: Sequence[ast.AST]) -> str:
    """What share of functions or classes has a docstring of its own."""
    return f"{sum(bool(ast.get_docstring(n)) for n in nodes) / max(len(nodes), 1):.0%}"


def measure(package: Path, tests: Path | None = None) -> dict[str, str]:
    """Measure a package, and how long its tests are; one row of the table for each entry."""
    modules = read_package(package)
    sizes = [module.num_lines for module in modules]
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    functions = [node for node in nodes if isinstance(node, _FUNCTIONS)]
    public = [node for node in functions if not node.name.startswith("_")]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    lengths = [(node.end_lineno or 0) - node.lineno + 1 for node in functions]
    parameters = [count_parameters(node) for node in functions]
    top, below = (
        sum(exported(each) for each in modules if each.is_package and len(each.parts) == depth)
        for depth in (1, 2)
    )
    cycles = import_cycles(modules)
    rows = {
        "files / lines": f"{len(sizes)} / {sum(sizes):,}",
        "median / p90 / max file": " / ".join(str(rank(sizes, s)) for s in (0.5, 0.9, 1.0)),
        "public functions / classes documented": (f"{documented(public)} / {documented(classes)}"),
        f"functions over {LONG_FUNCTION} lines": str(sum(n > LONG_FUNCTION for n in lengths)),
        f"parameters p90 / max / functions with over {MANY_PARAMETERS}": (
            f"{rank(parameters, 0.9)} / {rank(parameters, 1.0)} / "
            f"{sum(n > MANY_PARAMETERS for n in parameters)}"
        ),
        "public names, top / below": f"{top} / {below}",
        "import cycles": "; ".join(", ".join(cycle) for cycle in cycles) or "none",
    }
    if tests is not None:
        num_lines = sum(module.num_lines for module in read_package(tests))
        rows["test : source"] = f"{num_lines / max(sum(sizes), 1):.2f} ({num_lines:,} lines)"
    return rows


def rooms(package: Path) -> dict[str, int]:
    """Lines of each package and module directly below the top, the longest first."""
    lines: dict[str, int] = {}
    for module in read_package(package):
        inside = len(module.parts) > 2 or (module.is_package and len(module.parts) == 2)
        room = module.parts[1] if inside else "(top)"
        lines[room] = lines.get(room, 0) + module.num_lines
    return dict(sorted(lines.items(), key=lambda item: -item[1]))


def table(head: str, rows: dict[str, str]) -> str:
    """A Markdown table of two columns."""
    return "\n".join([f"| | {head} |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path, nargs="?", default=Path("gpflow_dwp"))
    parser.add_argument("tests", type=Path, nargs="?", default=Path("tests"))
    given = parser.parse_args()
    print(table(given.package.name, measure(given.package.resolve(), given.tests.resolve())))
    print()
    print(table("lines", {name: f"{n:,}" for name, n in rooms(given.package.resolve()).items()}))
