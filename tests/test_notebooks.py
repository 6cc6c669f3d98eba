"""Every notebook runs from its first cell to its last, in its shortened form."""

from __future__ import annotations

from pathlib import Path

import pytest
from package_source import ROOT

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.pct.py"))
LONGEST_CELL = 600  # seconds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The notebook's kernel is a process of its own, which inherits these.
    monkeypatch.setenv("GPFLOW_DWP_FAST", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = jupytext.read(path)
    client = nbclient.NotebookClient(
        notebook,
        timeout=LONGEST_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )

    client.execute()
