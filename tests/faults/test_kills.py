"""A training that is killed at a random moment ends, when it goes on, bit for bit as without.

As a program, ``python test_kills.py KINDS``, it takes a JSON list of kinds of training. All
libraries are imported once and nothing is computed there, so that each training is a fork of it and
starts at once. For each kind there is a line of JSON on standard output: after how many steps the
training went on, and what differs at its end from one that was never killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from model_reference import toy_data

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.iterates import parameter_vector
from gpflow_dwp.training import Callback, EarlyStopping, TrainingProgress

KINDS = (
    "1 regression stopping",
    "3 pseudo_targets minibatches",
    "3 regression",
    "1 pseudo_targets minibatches stopping",
    "3 regression stopping",
    "1 pseudo_targets",
)
KILLS, KILLS_IN_SHORT = 100, 1
STEPS, INTERVAL, SECONDS_OF_PAUSE = 36, 3, 0.03
TESTS = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")


def test_what_was_killed_goes_on_bit_for_bit(some: Any) -> None:
    kinds = some([*islice(cycle(KINDS), KILLS)], KILLS_IN_SHORT)
    process = subprocess.run(
        [sys.executable, __file__, json.dumps(kinds)],
        stdout=subprocess.PIPE,
        env=os.environ | ONE_THREAD | {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        check=True,
    )
    ends = [json.loads(line) for line in process.stdout.splitlines()]
    assert [end["kind"] for end in ends] == kinds
    assert not [end for end in ends if end["differ"]]
    print("went on after steps", sorted(end["step"] for end in ends))


def train(kind: str, folder: Path, *also: Callback) -> None:
    """Train as a kind says, with saves, and write down what came of it."""
    X, Y = toy_data()
    depth, output, *more = kind.split()

    def note(progress: TrainingProgress) -> None:
        with (folder / "log").open("a") as file:
            file.write(f"{progress.step}\n")

    callbacks: list[Callback] = [note, *also]
    if "stopping" in more:
        stopping = EarlyStopping((X[:4], Y[:4]), patience=4, start_step=9, num_samples=3)
        callbacks.insert(0, stopping)
    model = build_deep_wishart_process(
        (X, Y), int(depth), num_inducing=4, output=output, num_samples=2
    )
    history = fit(
        model,
        (X, Y),
        STEPS,
        batch_size=5 if "minibatches" in more else None,
        progress=False,
        callbacks=callbacks,
        callback_interval=INTERVAL,
        checkpoint_directory=folder / "state",
        seconds_between_checkpoints=0.0,
    )
    np.savez(
        folder / "end.npz",
        data_term=history.data_term,
        log_ratios=history.log_ratios,
        parameters=parameter_vector(model),
    )


def begin(function: Callable[..., None], *arguments: object) -> int:
    """Run a function in a process of its own; return its number."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        os.dup2(2, 1)
        function(*arguments)
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        os._exit(code)


def pause(progress: TrainingProgress) -> None:
    """Leave time in which the process can be killed, and do not end before it was."""
    time.sleep(SECONDS_OF_PAUSE if progress.step < STEPS - INTERVAL else 60.0)


def kill(kind: str, folder: Path) -> None:
    """Kill a training at a random moment after its first save."""
    number = begin(train, kind, folder, pause)
    log = folder / "log"
    while not (log.exists() and log.read_text().count("\n") > 2):
        if os.waitpid(number, os.WNOHANG)[0]:
            raise RuntimeError(f"the training {kind} ended by itself")
        time.sleep(0.005)
    time.sleep(random.SystemRandom().uniform(0.0, 1.2 * STEPS / INTERVAL * SECONDS_OF_PAUSE))
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def main(kinds: list[str]) -> None:
    """Kill one training after another, and let each go on."""
    with tempfile.TemporaryDirectory() as root:
        whole = {kind: Path(root, kind) for kind in kinds}
        for kind, folder in whole.items():
            folder.mkdir()
            os.waitpid(begin(train, kind, folder), 0)
        for count, kind in enumerate(kinds):
            folder = Path(root, str(count))
            folder.mkdir()
            kill(kind, folder)
            saved = len((folder / "log").read_text().splitlines())
            os.waitpid(begin(train, kind, folder), 0)
            with np.load(folder / "end.npz") as ours, np.load(whole[kind] / "end.npz") as theirs:
                differ = [key for key in ours.files if ours[key].tobytes() != theirs[key].tobytes()]
            print(
                json.dumps({"kind": kind, "step": saved * INTERVAL, "differ": differ}), flush=True
            )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
