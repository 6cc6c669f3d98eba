"""The numbers of pages and README are those of the files of results."""

from __future__ import annotations

import pytest


def test_pages_have_the_numbers_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever adds results, or changes a table by hand, runs `python ci/tables.py`."""
    import tables

    assert tables.main(["--check"]) == 0, capsys.readouterr().out
    old, new = "<!-- table: comparison, claim -->\nOn 13 of 13.\n<!-- end -->", "On 13 of 13"
    assert new not in tables.filled(old)
