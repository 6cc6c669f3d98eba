"""The page of what is used beside the documented interfaces of other packages is complete."""

from __future__ import annotations

import ast
import re

from package_source import MODULES, ROOT

PAGE = (ROOT / "notebooks" / "how_it_is_built.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("## What we lean on") :]
# Of named tuples and of os, which document them.
DOCUMENTED = {"_asdict", "_exit", "_fields", "_replace"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names() -> set[str]:
    """All that the package itself defines or assigns."""
    found = set()
    for module in MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    found.add(node.attr)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).split(".")[-1])
    return found


def test_private_parts_of_others_are_named_with_their_place() -> None:
    """A new use of one, which a release of theirs may break, would be on no page."""
    own, found = own_names() | DOCUMENTED, set()
    for module in MODULES:
        place = "/".join(module.path.relative_to(ROOT).parts[1:])
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                found.add((place, node.attr))
    named = {
        (place, name)
        for place, what in re.findall(r"^\| `([\w/]+\.py)` \| (.*?) \|", PAGE, re.MULTILINE)
        for name in re.findall(r"`(_\w+)`", what)
    }
    # These are called by a name that is also one of ours, or in a string.
    besides = {("models/predictive.py", "_scalar_log_prob")}
    assert found | besides == named
    for place, name in besides:
        assert name in (ROOT / "gpflow_dwp" / place).read_text(encoding="utf-8")
