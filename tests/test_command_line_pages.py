"""The pages of the command line are its help."""

from __future__ import annotations

import importlib.util

import pytest
from package_source import ROOT

# Its fourth version, all that Python 3.10 has, writes pages a little differently.
pytest.importorskip("cyclopts", minversion="5.0")


def test_pages_are_what_the_help_says() -> None:
    """An option that is added, renamed or described anew: `python ci/commands.py`."""
    spec = importlib.util.spec_from_file_location("commands", ROOT / "ci" / "commands.py")
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)

    pages = commands.pages()

    found = {path.name: path.read_text(encoding="utf-8") for path in commands.FOLDER.glob("*.md")}
    assert found == pages
    assert "--no-" not in "".join(pages.values())
