"""A small archive of UCI data, and cells that are quick to train on it."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.lab.study import _job
from gpflow_dwp.lab.study.cell import Cell
from gpflow_dwp.lab.study.results import Record
from gpflow_dwp.lab.study.runner import run_cells

__all__ = [
    "NUM_ROWS",
    "TEST_ROWS",
    "replace_process",
    "run_tiny_cells",
    "tiny_cell",
    "write_archive",
]

NUM_ROWS, TEST_ROWS = 40, 8

# Every stand-in for the process of a cell begins so.
_BEGINNING = """\
import json, os, signal, sys, time
from pathlib import Path

job = json.loads(sys.argv[1])
seed = job["cell"].get("seed", 0)

def send(**message):
    print(json.dumps(message), flush=True)

send(step=3, bound=-1.5)
"""


def write_archive(folder: Path, *, splits: int = 2) -> Path:
    """Write made-up data under the name of yacht, far from standardised units."""
    data = folder / "yacht" / "data"
    data.mkdir(parents=True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 2))
    y = 100.0 + 20.0 * np.sin(2.0 * X[:, :1]) + 2.0 * rng.normal(size=(NUM_ROWS, 1))
    np.savetxt(data / "data.txt", np.hstack([X, y]))
    np.savetxt(data / "index_features.txt", [0, 1], fmt="%d")
    np.savetxt(data / "index_target.txt", [2], fmt="%d")
    np.savetxt(data / "n_splits.txt", [splits], fmt="%d")
    for split in range(splits):
        rows = rng.permutation(NUM_ROWS)
        np.savetxt(data / f"index_test_{split}.txt", rows[:TEST_ROWS], fmt="%d")
        np.savetxt(data / f"index_train_{split}.txt", rows[TEST_ROWS:], fmt="%d")
    return folder


def tiny_cell(split: int = 0, **changes: Any) -> Cell:
    """A cell of a few steps, with few inducing points and draws."""
    fields = {
        "dataset": "yacht",
        "depth": 1,
        "model": "GW",
        "split": split,
        "num_steps": 12,
        "num_inducing": 6,
        "num_samples": 2,
        "num_prediction_samples": 5,
    }
    return Cell.from_dict(fields | changes)


def replace_process(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> Path:
    """Let a program stand in for the process of a cell; return a study's directory.

    :param program: What it does, by ``job``, what the process is told, ``seed`` of the cell, and
        ``send``, which tells the study.
    """
    path = folder / "stand_in.py"
    path.write_text(_BEGINNING + textwrap.dedent(program))
    monkeypatch.setattr(_job, "_PROGRAM", (sys.executable, str(path)))
    return folder / "study"


def run_tiny_cells(directory: Path, *seeds: int, **arguments: Any) -> list[Record]:
    """Run cells that differ in their seed."""
    cells = [tiny_cell(seed=seed) for seed in seeds]
    return run_cells(cells, directory, **{"progress": False, **arguments})
