"""The documentation builds without a warning, and every link within it leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from package_source import ROOT

build = pytest.importorskip("sphinx.cmd.build")
pytest.importorskip("myst_nb")
pytest.importorskip("sphinx-mathjax-offline")

# Not the theme of the site, which takes a third of the time for a navigation beside every page.
OPTIONS = ["-b", "html", "-W", "--keep-going", "-q", "-D", "html_theme=basic"]


@pytest.mark.filterwarnings("ignore")  # what Sphinx itself warns of goes to the log
def test_the_site_builds_without_running_notebooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, which has imported most of what is documented."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("GPFLOW_DWP_DOCS_EXECUTION", "off")
    site, trees = str(tmp_path / "site"), str(tmp_path / "trees")

    assert build.main([*OPTIONS, "-c", "ci/docs", "-d", trees, "notebooks", site]) == 0

    command = [sys.executable, "ci/docs/check_links.py", site]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-2_000:]
