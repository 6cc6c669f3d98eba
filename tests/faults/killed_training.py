"""A training in a process of its own, which can import this file by its name."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from model_reference import toy_data

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.iterates import parameter_vector
from gpflow_dwp.training import EarlyStopping, TrainingProgress

STEPS, INTERVAL, SECONDS_OF_PAUSE = 36, 3, 0.03


def train(kind: str, folder: Path, pauses: bool) -> None:
    """Train as a kind says, with saves, and write down what came of it.

    :param pauses: Whether to leave time in which it can be killed, and not to end before it was.
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    X, Y = toy_data()
    depth, output, *more = kind.split()

    def note(progress: TrainingProgress) -> None:
        with (folder / "log").open("a") as file:
            file.write(f"{progress.step}\n")
        if pauses:
            time.sleep(SECONDS_OF_PAUSE if progress.step < STEPS - INTERVAL else 60.0)

    stopping = EarlyStopping((X[:4], Y[:4]), patience=4, start_step=9, num_samples=3)
    model = build_deep_wishart_process(
        (X, Y), int(depth), num_inducing=4, output=output, num_samples=2
    )
    history = fit(
        model,
        (X, Y),
        STEPS,
        batch_size=5 if "minibatches" in more else None,
        progress=False,
        callbacks=[stopping, note] if "stopping" in more else [note],
        callback_interval=INTERVAL,
        checkpoint_directory=folder / "state",
        seconds_between_checkpoints=0.0,
    )
    end = {"data_term": history.data_term, "log_ratios": history.log_ratios}
    np.savez(folder / "end.npz", **end, parameters=parameter_vector(model))
