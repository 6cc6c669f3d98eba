"""The pages say what results and the program say; `ci/docs.sh` builds them."""

from __future__ import annotations

import pytest
from package_source import ROOT


def test_the_page_of_the_command_line_is_its_help() -> None:
    """An option that is added, renamed or described anew: `python ci/commands.py`."""
    # Its fourth version, all that Python 3.10 has, writes pages a little differently.
    pytest.importorskip("cyclopts", minversion="5.0")
    import commands

    assert (ROOT / "notebooks" / "command_line.md").read_text(encoding="utf-8") == commands.page()
    assert "--no-" not in commands.page()


def test_pages_have_the_numbers_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever adds results, or changes a table by hand, runs `python ci/tables.py`."""
    import tables

    assert tables.main(["--check"]) == 0, capsys.readouterr().out
    old, new = "<!-- table: comparison, claim -->\nOn 13 of 13.\n<!-- end -->", "On 13 of 13"
    assert new not in tables.filled(old)
