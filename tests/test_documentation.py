"""The documentation builds without a warning, and every link within it leads somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from package_source import ROOT

pytest.importorskip("furo")
pytest.importorskip("myst_nb")


def test_the_site_builds_without_running_notebooks(tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ["-b", "html", "-c", "ci/docs", "-W", "--keep-going", "-q", "-d", tmp_path / "trees"]
    for command in (
        ["-m", "sphinx", *options, "notebooks", site],
        ["ci/docs/check_links.py", site],
    ):
        finished = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            env=os.environ | {"GPFLOW_DWP_DOCS_EXECUTION": "off"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert finished.returncode == 0, finished.stdout[-2_000:] + finished.stderr[-4_000:]
