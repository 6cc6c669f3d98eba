"""GPflow's monitoring tasks in training: scalars, figures and saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.monitor import (
    ExecuteCallback,
    ImageToTensorBoard,
    ModelToTensorBoard,
    Monitor,
    MonitorTaskGroup,
    ScalarToTensorBoard,
)
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import MonitorCallback, TrainingProgress


def test_tasks_run_at_their_periods_and_write_for_tensorboard(tmp_path: Path) -> None:
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", exc_type=ImportError
    )
    pytest.importorskip("matplotlib")
    model, log = tiny_model(1), str(tmp_path / "log")
    noise: list[float] = []
    saves = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model), tmp_path / "saves", max_to_keep=3
    )

    def draw(figure: Any, axes: Any) -> None:
        axes.plot([0.0, 1.0], [0.0, noise[-1]])

    def note(progress: TrainingProgress) -> None:
        noise.append(float(progress.model.likelihood.variance.numpy()))

    plain = Monitor(
        MonitorTaskGroup(ModelToTensorBoard(log, model, keywords_to_monitor=["likelihood"])),
        MonitorTaskGroup([ImageToTensorBoard(log, draw, "fit"), ExecuteCallback(saves.save)], 4),
    )
    with_progress = Monitor(
        MonitorTaskGroup(ScalarToTensorBoard(log, lambda progress: progress.elbo, "elbo"))
    )
    history = fit(
        model,
        toy_data(),
        9,
        progress=False,
        callbacks=[
            note,
            MonitorCallback(plain),
            MonitorCallback(with_progress, pass_progress=True),
        ],
        callback_interval=2,
    )

    events = accumulators.EventAccumulator(log, size_guidance={"tensors": 0})
    events.Reload()
    assert [event.step for event in events.Tensors("likelihood.variance")] == [2, 4, 6, 8, 9]
    written = [
        float(tf.make_ndarray(event.tensor_proto))
        for event in events.Tensors("likelihood.variance")
    ]
    np.testing.assert_allclose(written, noise, rtol=1e-6)
    bounds = [float(tf.make_ndarray(event.tensor_proto)) for event in events.Tensors("elbo")]
    np.testing.assert_allclose(bounds[0], history.elbo[:2].mean(), rtol=1e-6)
    assert [event.step for event in events.Tensors("fit")] == [4, 8]
    assert len(saves.checkpoints) == 2
