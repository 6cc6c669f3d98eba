"""The page of the command line is its help."""

from __future__ import annotations

import pytest
from package_source import ROOT

# Its fourth version, all that Python 3.10 has, writes pages a little differently.
pytest.importorskip("cyclopts", minversion="5.0")


def test_the_page_is_what_the_help_says() -> None:
    """An option that is added, renamed or described anew: `python ci/commands.py`."""
    import commands

    assert (ROOT / "notebooks" / "command_line.md").read_text(encoding="utf-8") == commands.page()
    assert "--no-" not in commands.page()
