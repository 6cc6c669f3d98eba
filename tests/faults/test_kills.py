"""A training that is killed at a random moment ends, when it goes on, bit for bit as without."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.killed_training import INTERVAL, SECONDS_OF_PAUSE, STEPS, train

KINDS = (
    "1 regression stopping",
    "1 pseudo_targets minibatches stopping",
    "2 regression",
    "2 pseudo_targets minibatches",
    "2 regression stopping",
    "1 pseudo_targets",
)
KILLS = 100
# Libraries are imported once and nothing is computed there: each training is a fork, at once.
PROCESSES = multiprocessing.get_context("forkserver")


def begin(kind: str, folder: Path, pauses: bool = False) -> Any:
    folder.mkdir(exist_ok=True)
    process = PROCESSES.Process(target=train, args=(kind, folder, pauses))
    process.start()
    return process


def kill_one(kind: str, folder: Path) -> None:
    """Kill a training at a random moment after its first save."""
    process, log = begin(kind, folder, pauses=True), folder / "log"
    while not (log.exists() and log.read_text().count("\n") > 2):
        assert process.is_alive(), f"the training {kind} ended by itself"
        time.sleep(0.005)
    time.sleep(random.SystemRandom().uniform(0.0, 1.2 * STEPS / INTERVAL * SECONDS_OF_PAUSE))
    process.kill()
    process.join()


def numbers_at_end(kind: str, folder: Path) -> list[bytes]:
    """Train to the end, and read what came of it."""
    process = begin(kind, folder)
    process.join()
    assert process.exitcode == 0
    with np.load(folder / "end.npz") as end:
        return [end[name].tobytes() for name in sorted(end.files)]


@pytest.mark.slow  # `test_crashes` ends a run at some of its operations on files, in one process
def test_what_was_killed_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        monkeypatch.setitem(os.environ, name, "1")
    PROCESSES.set_forkserver_preload(["gpflow_dwp.training", "gpflow_dwp.iterates"])
    kinds = [*islice(cycle(KINDS), KILLS)]
    whole = {kind: numbers_at_end(kind, tmp_path / kind) for kind in {*kinds}}

    for count, kind in enumerate(kinds):
        kill_one(kind, tmp_path / str(count))
        assert numbers_at_end(kind, tmp_path / str(count)) == whole[kind], kind
