"""One of two processes that train together: ``python workers.py FOLDER INDEX PORT PORT``.

It prints what it has seen, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from replicas import DATA, largest_difference, message, trained, wishart

from gpflow_dwp import fit
from gpflow_dwp.training import TrainingProgress


class Log:
    """A callback that is for the first process alone."""

    only_in_first_worker = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, progress: TrainingProgress) -> None:
        with self.path.open("a") as file:
            file.write(f"{progress.step}\n")


def resumed(strategy: Any, folder: Path) -> list[np.ndarray]:
    """A run that a callback ends after 8 steps, and that goes on to its end."""

    def part(until: int) -> list[np.ndarray]:
        log = Log(folder / f"log-{INDEX}.csv")
        return trained(
            strategy,
            wishart,
            batch_size=5,
            callbacks=[log, lambda progress: progress.step == until],
            callback_interval=4,
            checkpoint_directory=folder / "state",
        )

    if strategy is not None:
        part(8)
    return part(99)


def interrupted(strategy: Any) -> str:
    """A run of which Ctrl-C interrupts the second process only."""

    def interrupt(_: object) -> None:
        if INDEX == 1:
            signal.raise_signal(signal.SIGINT)

    with strategy.scope():
        model = wishart()
    history = fit(
        model,
        DATA,
        9,
        callbacks=[interrupt],
        callback_interval=3,
        strategy=strategy,
        progress=False,
    )
    return history.stop_reason


def apart(strategy: Any, folder: Path) -> list[str]:
    """A run of which the first process finds a state in its folder, and the second none."""
    own = folder / f"state-of-{INDEX}"
    if INDEX == 0:
        trained(None, wishart, 4, checkpoint_directory=own)
    with message() as seen:
        trained(strategy, wishart, 4, checkpoint_directory=own)
    return seen


def different(strategy: Any) -> list[str]:
    """A run with batches of another size in the second process."""
    with message() as seen:
        trained(strategy, wishart, 4, batch_size=5 + INDEX)
    return seen


if __name__ == "__main__":
    FOLDER, INDEX, PORTS = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    cluster = {"worker": [f"localhost:{port}" for port in PORTS]}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": INDEX}}
    )
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    together = resumed(strategy, FOLDER)
    found: dict[str, Any] = {
        "interrupted": interrupted(strategy),
        "apart": apart(strategy, FOLDER),
        "different": different(strategy),
        "saved": sorted({path.name.split(".")[0] for path in (FOLDER / "state").iterdir()}),
        "logs": sorted(path.name for path in FOLDER.glob("*.csv")),
    }
    if INDEX == 0:
        alone = resumed(None, FOLDER / "alone")
        found["distance"] = largest_difference(alone, together)
    print(json.dumps(found))
