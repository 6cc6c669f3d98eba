"""The pages: the site builds without a warning, and says what results and the program say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from package_source import ROOT

# Not the theme of the site, which takes a third of the time for a navigation beside every page.
OPTIONS = ["-b", "html", "-W", "--keep-going", "-q", "-D", "html_theme=basic"]


@pytest.mark.slow  # `ci/docs.sh` builds it with every push, too
@pytest.mark.filterwarnings("ignore")  # what Sphinx itself warns of goes to the log
def test_the_site_builds_without_running_notebooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, which has imported most of what is documented; links lead somewhere."""
    for package in ("myst_nb", "sphinx-mathjax-offline"):
        pytest.importorskip(package)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("GPFLOW_DWP_DOCS_EXECUTION", "off")
    site, trees = str(tmp_path / "site"), str(tmp_path / "trees")
    build = pytest.importorskip("sphinx.cmd.build")
    assert build.main([*OPTIONS, "-c", "ci/docs", "-d", trees, "notebooks", site]) == 0
    command = [sys.executable, "ci/docs/check_links.py", site]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-2_000:]


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
