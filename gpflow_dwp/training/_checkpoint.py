"""The state of a training run on disk, from which it goes on as if it had not been cut off."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training.callbacks import Callback
from gpflow_dwp.training.loop import CompiledLoop, StepRecords

__all__ = ["TrainingCheckpoint"]

# What the first checkpoints did not say of their runs.
_LATER = {"optimizer", "model", "parameters", "data"}
_WITH_STATE = (tf.Module, tf.train.experimental.PythonState)


class TrainingCheckpoint:
    """Saves and restores a run: parameters, optimiser, step, place in the data, callbacks, history.

    :param directory: Where; made here if need be.
    :param loop: The loop, not yet used.
    :param batches: Whatever holds the place in the data, if anything does.
    :param settings: What must be the same in a run that goes on, in plain values.
    :param callbacks: Those of the run, of which some may have a state.
    :param seconds_between_saves: After how long the next save is due.
    """

    def __init__(
        self,
        directory: str | Path,
        loop: CompiledLoop,
        batches: Any | None,
        settings: Mapping[str, Any],
        callbacks: Sequence[Callback] = (),
        *,
        seconds_between_saves: float = 60.0,
    ) -> None:
        self._directory = Path(directory)
        if self._directory.exists() and not self._directory.is_dir():
            raise ValueError(f"checkpoint_directory must be a folder, got a file, {directory}.")
        self._settings = dict(settings)
        with_state = [callback for callback in callbacks if isinstance(callback, _WITH_STATE)]
        self._settings["callbacks"] = [type(callback).__name__ for callback in with_state]
        self._past = _Past()
        trackables = {**loop.state, "past": self._past}
        if batches is not None:
            trackables["batches"] = batches
        trackables.update({f"callback_{i}": callback for i, callback in enumerate(with_state)})
        self._checkpoint = tf.train.Checkpoint(**trackables)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self._directory), max_to_keep=2
        )
        self._seconds_between_saves = seconds_between_saves
        self._last_save = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last save, or the start, is long enough ago."""
        return time.monotonic() - self._last_save >= self._seconds_between_saves

    def restore(self) -> tuple[BoundTerms, float] | None:
        """Go back to the last saved state, if there is one.

        :return: What the steps up to it recorded, and the seconds that they took.
        :raises ValueError: If it was saved with other settings.
        """
        latest = self._manager.latest_checkpoint
        if latest is None:
            return None
        # First the history alone: variables of another shape could not be restored.
        tf.train.Checkpoint(past=self._past).restore(latest).expect_partial()
        for name, value in self._settings.items():
            if name in _LATER and name not in self._past.settings:
                continue
            # Runs of before there were callbacks with a state had none.
            saved = self._past.settings.get(name, [] if name == "callbacks" else None)
            if saved != value:
                if isinstance(saved, dict):
                    name, saved, value = _first_difference(saved, value)
                raise ValueError(
                    f"checkpoint_directory {self._directory} holds a run with {name}={saved!r}, "
                    f"got {value!r}."
                )
        self._checkpoint.restore(latest).assert_consumed()
        return self._past.terms, self._past.seconds

    def save(self, records: Sequence[StepRecords], seconds: float) -> None:
        """Save the present state.

        :param records: What all steps so far recorded.
        :param seconds: The time that they took.
        """
        self._past.set(records, seconds, self._settings)
        self._manager.save()
        self._last_save = time.monotonic()


def _first_difference(saved: Mapping[str, Any], present: Mapping[str, Any]) -> tuple[str, Any, Any]:
    name = next(name for name in {**saved, **present} if saved.get(name) != present.get(name))
    return name, saved.get(name), present.get(name)


class _Past(tf.train.experimental.PythonState):
    """History and settings, within the checkpoint so that they are of the same step."""

    def __init__(self) -> None:
        self.terms = BoundTerms(np.zeros(0), np.zeros((0, 0)))
        self.seconds = 0.0
        self.settings: dict[str, Any] = {}

    def set(self, records: Sequence[StepRecords], seconds: float, settings: dict[str, Any]) -> None:
        self.terms = BoundTerms(
            np.concatenate([record.terms.data for record in records]),
            np.concatenate([record.terms.log_ratios for record in records]),
        )
        self.seconds, self.settings = seconds, settings

    def serialize(self) -> bytes:
        buffer = io.BytesIO()
        np.savez(
            buffer,
            data=self.terms.data,
            log_ratios=self.terms.log_ratios,
            seconds=self.seconds,
            settings=json.dumps(self.settings),
        )
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        with np.load(io.BytesIO(string_value)) as saved:
            self.terms = BoundTerms(saved["data"], saved["log_ratios"])
            self.seconds = float(saved["seconds"])
            self.settings = json.loads(str(saved["settings"]))
