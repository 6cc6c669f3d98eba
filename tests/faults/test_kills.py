"""A hundred kills at random moments of training: what goes on ends bit for bit as if unbroken."""

from __future__ import annotations

import contextlib
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
from faults.outcomes import Tally
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import CSVLog, EarlyStopping

PART = "kills of training"
STEPS = 60
KILLS = 25
SECONDS_TO_START = 300

KINDS: dict[str, dict[str, Any]] = {
    "depth 1, regression": {"depth": 1, "output": "regression"},
    "depth 1, minibatches, early stopping": {"depth": 1, "batch_size": 5, "stops": True},
    "depth 3, regression, early stopping": {"depth": 3, "output": "regression", "stops": True},
    "depth 3, minibatches": {"depth": 3, "batch_size": 5},
}


def train(kind: str, folder: Path) -> None:
    """Train with saves after every few steps; write what it ends with."""
    settings = KINDS[kind]
    model = tiny_model(
        settings["depth"],
        posterior="GW",
        whiten=True,
        output=settings.get("output", "pseudo_targets"),
    )
    callbacks: list[Any] = [CSVLog(folder / "log.csv")]
    if settings.get("stops"):
        callbacks.append(EarlyStopping(toy_data(seed=1), patience=1000, num_samples=2))
    history = fit(
        model,
        toy_data(),
        STEPS,
        batch_size=settings.get("batch_size"),
        progress=False,
        callbacks=[*callbacks, lambda progress: time.sleep(0.05)],
        callback_interval=3,
        checkpoint_directory=folder / "state",
        seconds_between_checkpoints=0.0,
    )
    values = {str(i): variable.numpy() for i, variable in enumerate(model.trainable_variables)}
    np.savez(folder / "end.npz", data=history.data_term, ratios=history.log_ratios, **values)


def serve() -> None:
    """Train in copies of this process, which has imported all and computed nothing yet."""
    for line in sys.stdin:
        kind, folder = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            train(kind, Path(folder))
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


class _Server:
    """A process that trains in copies of itself."""

    def __init__(self) -> None:
        places = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
        program = f"import sys; sys.path[:0] = {places!r}\nimport faults.test_kills as kills\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{program}kills.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, kind: str, folder: Path) -> int:
        assert self.process.stdin
        self.process.stdin.write(f"{kind}\t{folder}\n")
        self.process.stdin.flush()
        return self._answer()

    def end(self) -> int:
        return self._answer()

    def _answer(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())


def newest(folder: Path) -> float:
    """When training last saved its state."""
    return max((path.stat().st_mtime for path in folder.glob("state/save-*")), default=0.0)


def kill_in_training(server: _Server, kind: str, folder: Path, seconds: float) -> bool:
    """Train on, and kill so long after the first save; return whether it was killed in time."""
    before, latest = newest(folder), time.monotonic() + SECONDS_TO_START
    child = server.begin(kind, folder)
    while newest(folder) <= before and not (folder / "end.npz").exists():
        assert time.monotonic() < latest
        time.sleep(0.005)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(child, signal.SIGKILL)
    return server.end() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_runs_go_on_bit_for_bit(kind: str, tally: Tally, tmp_path: Path) -> None:
    server, moments = _Server(), random.Random(kind)
    server.begin(kind, tmp_path / "whole")
    assert server.end() == 0
    whole = dict(np.load(tmp_path / "whole" / "end.npz"))
    kills = run = 0
    while kills < KILLS:
        run += 1
        folder, before = tmp_path / str(run), kills
        while not (folder / "end.npz").exists():
            kills += kill_in_training(server, kind, folder, moments.uniform(0.0, 0.6))
        ended = dict(np.load(folder / "end.npz"))
        same = ended.keys() == whole.keys() and all(
            np.array_equal(value, whole[name]) for name, value in ended.items()
        )
        for _ in range(kills - before):
            tally.add("held" if same else "silently wrong", f"{kind}, run {run}")
    server.process.kill()
    server.process.wait()
