"""A process that trains is killed at a random moment; what goes on ends as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, fit
from gpflow_dwp.training import CSVLog, TrainingHistory, TrainingProgress

TESTS = Path(__file__).resolve().parents[1]
KINDS = {"full batch": None, "minibatches": 5}
STEPS = 90
SECONDS_TO_START = 120


def wait(progress: TrainingProgress) -> None:
    """Leave time in which the process can be killed, and do not end before it was."""
    time.sleep(0.05 if progress.step < STEPS - 6 else SECONDS_TO_START)


def train(
    kind: str, folder: Path, also: Any = (), **arguments: Any
) -> tuple[DeepWishartProcess, TrainingHistory]:
    """Train, with a log and saves."""
    model = tiny_model(2, posterior="GW", whiten=True)
    history = fit(
        model,
        toy_data(),
        STEPS,
        batch_size=KINDS[kind],
        progress=False,
        callbacks=[CSVLog(folder / "log.csv"), *also],
        callback_interval=3,
        checkpoint_directory=folder / "state",
        **arguments,
    )
    return model, history


def kill_while_training(kind: str, folder: Path) -> float:
    """Kill a process some time after it saved a step of its log; return after how many seconds."""
    program = f"""
import pathlib, sys
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}, {str(Path(__file__).parent)!r}]
import test_killed
folder, often = pathlib.Path({str(folder)!r}), 0.0
test_killed.train({kind!r}, folder, [test_killed.wait], seconds_between_checkpoints=often)
"""
    after = random.SystemRandom().uniform(0.0, 2.0)
    log = folder / "log.csv"
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    try:
        latest = time.monotonic() + SECONDS_TO_START
        # Two rows and a header: the state was saved at the first of them, after its step.
        while not log.exists() or log.read_text().count("\n") < 3:
            assert process.poll() is None and time.monotonic() < latest
            time.sleep(0.01)
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL
    return after


def steps_and_bounds(folder: Path) -> list[list[str]]:
    """A log without its second column, the seconds."""
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    return [[row[0], *row[2:]] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_goes_on_bit_for_bit(kind: str, tmp_path: Path) -> None:
    after = kill_while_training(kind, tmp_path / "killed")
    first: list[int] = []

    def note(progress: TrainingProgress) -> None:
        first.append(progress.step)

    resumed, history = train(kind, tmp_path / "killed", [note])
    whole, expected = train(kind, tmp_path / "whole")

    print(f"killed {after} seconds after the second row; went on to step {first[0]}")
    assert 3 < first[0] <= STEPS
    np.testing.assert_array_equal(history.data_term, expected.data_term)
    np.testing.assert_array_equal(history.log_ratios, expected.log_ratios)
    for variable, other in zip(resumed.trainable_variables, whole.trainable_variables, strict=True):
        np.testing.assert_array_equal(variable, other)
    assert steps_and_bounds(tmp_path / "killed") == steps_and_bounds(tmp_path / "whole")
