"""The numbers of pages and README are those of the files of results."""

from __future__ import annotations

import importlib.util

import pytest
from package_source import ROOT

SCRIPT = ROOT / "ci" / "tables.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="needs a checkout")


def test_pages_have_the_numbers_of_the_results(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever adds results, or changes a table by hand, runs `python ci/tables.py`."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    specification = importlib.util.spec_from_file_location("ci_tables", SCRIPT)
    assert specification is not None and specification.loader is not None
    tables = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tables)

    assert tables.main(["--check"]) == 0, capsys.readouterr().out
    old, new = "<!-- table: comparison, claim -->\nOn 13 of 13.\n<!-- end -->", "On 13 of 13"
    assert new not in tables.filled(old)
