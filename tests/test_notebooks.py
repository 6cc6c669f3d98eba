"""Notebooks run from the first cell to the last, in their shortened form.

`ci/docs.sh --fast` runs all of them so with every push.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from package_source import ROOT

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
jupyter_client = pytest.importorskip("jupyter_client")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.pct.py"))
LONGEST_CELL = 600  # seconds
# Those that take more than a few steps, also when they are shortened: compiling the others takes
# far longer than the steps.
COMPILED = ("03_looking", "13_rotations", "16_matrix", "17_iterates")

# What a kernel of its own would start with, but for the modules that are imported already; figures
# are drawn where the site is built.
FRESH = """
import os, gpflow, matplotlib, tensorflow
tensorflow.config.run_functions_eagerly({eager})
os.chdir({folder!r})
gpflow.config.set_config(gpflow.config.Config())
matplotlib.rcdefaults()
%config InlineBackend.figure_formats = []
%reset -f
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """One process for all notebooks: half of the time of most would go into importing."""
    manager = jupyter_client.KernelManager(kernel_name="python3")
    with pytest.MonkeyPatch.context() as inherited:
        inherited.setenv("GPFLOW_DWP_FAST", "1")
        inherited.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        manager.start_kernel()
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, kernel: Any, tmp_path: Path) -> None:
    notebook = jupytext.read(path)
    eager = not path.name.startswith(COMPILED)
    fresh = nbformat.v4.new_code_cell(FRESH.format(folder=str(tmp_path), eager=eager))
    notebook.cells.insert(0, fresh)
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=LONGEST_CELL)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
