"""Trainings that are killed and go on, each in a process of its own: ``python zygote.py CASES``.

CASES is a JSON list of kinds of training. All libraries are imported once and nothing is computed
here, so that each process is a fork and starts at once. For each case there is a line of JSON on
standard output: after how many steps the training went on, and what differs at its end from one
that was never killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from model_reference import toy_data

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.iterates import parameter_vector
from gpflow_dwp.training import Callback, CSVLog, EarlyStopping, TrainingProgress

STEPS, INTERVAL = 36, 3
SECONDS_OF_PAUSE = 0.03


def train(kind: str, folder: Path, *also: Callback) -> None:
    """Train as a kind says, with a log and saves, and write down what came of it."""
    X, Y = toy_data()
    depth, output, *more = kind.split()
    callbacks: list[Callback] = []
    if "stopping" in more:
        callbacks.append(EarlyStopping((X[:4], Y[:4]), patience=4, start_step=9, num_samples=3))
    model = build_deep_wishart_process(
        (X, Y), int(depth), num_inducing=4, output=output, num_samples=2
    )
    history = fit(
        model,
        (X, Y),
        STEPS,
        batch_size=5 if "minibatches" in more else None,
        progress=False,
        callbacks=[*callbacks, CSVLog(folder / "log.csv"), *also],
        callback_interval=INTERVAL,
        checkpoint_directory=folder / "state",
        seconds_between_checkpoints=0.0,
    )
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    log = [",".join([row[0], *row[2:]]) for row in rows]  # without the seconds
    np.savez(
        folder / "end.npz",
        data_term=history.data_term,
        log_ratios=history.log_ratios,
        parameters=parameter_vector(model),
        log=np.array(log),
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
    log = folder / "log.csv"
    while not (log.exists() and log.read_text().count("\n") > 2):
        if os.waitpid(number, os.WNOHANG)[0]:
            raise RuntimeError(f"the training {kind} ended by itself")
        time.sleep(0.005)
    time.sleep(random.SystemRandom().uniform(0.0, 1.2 * STEPS / INTERVAL * SECONDS_OF_PAUSE))
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def differences(one: Path, other: Path) -> list[str]:
    """The names of what two trainings have not bit for bit in common."""
    with np.load(one / "end.npz") as ours, np.load(other / "end.npz") as theirs:
        names = [*ours.files]
        return [name for name in names if ours[name].tobytes() != theirs[name].tobytes()]


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
            saved = len((folder / "log.csv").read_text().splitlines()) - 1
            os.waitpid(begin(train, kind, folder), 0)
            found = differences(folder, whole[kind])
            print(json.dumps({"kind": kind, "step": saved * INTERVAL, "differ": found}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
