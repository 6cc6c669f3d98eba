"""The state of a training run on disk, from which it goes on as if it had not been cut off."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.utilities import parameter_dict

from gpflow_dwp.files import held
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training.callbacks import Callback
from gpflow_dwp.training.history import StepRecords, joined
from gpflow_dwp.training.loop import CompiledLoop

__all__ = ["TrainingCheckpoint", "run_identity"]

_WITH_STATE = (tf.Module, tf.train.experimental.PythonState)
_NAME = "state"


class TrainingCheckpoint:
    """Saves and restores a run: parameters, optimiser, step, place in the data, callbacks, history.

    TensorFlow's ``CheckpointManager`` keeps the last two saves, of which the first is of the start.
    A context, in which the directory is this run's alone.

    :param directory: Where; made here if need be.
    :param loop: The loop, not yet used.
    :param place: Whatever holds the place in the data, if anything does.
    :param settings: What must be the same in a run that goes on, in plain values.
    :param callbacks: Those of the run, of which some may have a state.
    :param seconds_between_saves: After how long the next save is due.
    :param is_writer: Whether this process saves; another one that takes the same steps only goes
        on from what was saved.
    :raises ValueError: If the directory is no path or not a folder. On entering the context: if it
        cannot be written, or TensorFlow cannot save the place in the data.
    :raises BlockingIOError: On entering the context: if another run is in it.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        loop: CompiledLoop,
        place: Any | None,
        settings: Mapping[str, Any],
        callbacks: Sequence[Callback],
        *,
        seconds_between_saves: float,
        is_writer: bool,
    ) -> None:
        self._directory = Path(directory)
        if self._directory.exists() and not self._directory.is_dir():
            raise ValueError(f"checkpoint_directory must be a folder, got a file, {directory}.")
        with_state = [callback for callback in callbacks if isinstance(callback, _WITH_STATE)]
        names = [type(callback).__name__ for callback in with_state]
        self._past = _Past({**settings, "callbacks": names})
        parts = {**loop.state, "past": self._past}
        if place is not None:
            parts["batches"] = place
        parts |= {f"callback_{i}": callback for i, callback in enumerate(with_state)}
        self._checkpoint = tf.train.Checkpoint(**parts)
        self._seconds_between_saves = seconds_between_saves
        self._is_writer = is_writer
        self._last_save = time.monotonic()
        self._held = contextlib.ExitStack()

    def __enter__(self) -> TrainingCheckpoint:
        try:
            if self._is_writer:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._held.enter_context(held(self._directory))
                for left in self._directory.glob(f"{_NAME}-*_temp"):  # by a run that was killed
                    shutil.rmtree(left, ignore_errors=True)
                for left in self._directory.glob("checkpoint.tmp*"):
                    left.unlink(missing_ok=True)
            self._manager = tf.train.CheckpointManager(
                self._checkpoint, str(self._directory), max_to_keep=2, checkpoint_name=_NAME
            )
            if self._is_writer and not self._saves():
                self._manager.save(checkpoint_number=0)  # what cannot be saved is known now
        except BlockingIOError as error:
            raise BlockingIOError(
                f"checkpoint_directory {self._directory} is in use by another run"
            ) from error
        except (OSError, ValueError, tf.errors.OpError) as error:
            self._held.close()
            reason = getattr(error, "strerror", None) or error
            if isinstance(error, tf.errors.FailedPreconditionError):
                reason = f"TensorFlow cannot save the place in this dataset ({error.message})"
            raise ValueError(
                f"checkpoint_directory {self._directory} cannot be written: {reason}."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def is_due(self) -> bool:
        """Whether the last save, or the start, is long enough ago."""
        return self._is_writer and time.monotonic() - self._last_save >= self._seconds_between_saves

    def restore(self) -> tuple[BoundTerms, float] | None:
        """Go back to the last saved state that is intact, if any was saved.

        :return: What the steps up to it recorded, and the seconds that they took.
        :raises ValueError: If it was saved with other settings, or no save is intact.
        """
        damages = []
        for save in self._saves():
            name, past = save.name, _Past({})
            try:
                # Settings first: of another run the rest may have other shapes.
                tf.train.Checkpoint(past=past).read(str(save)).expect_partial()
                self._check_settings(past.settings)
                self._checkpoint.restore(str(save)).assert_consumed()
            except (tf.errors.OpError, IndexError) as error:  # the latter of a file cut short
                reason = error.message if isinstance(error, tf.errors.OpError) else str(error)
                damages.append(f"{name} is damaged ({reason.strip()})")
                continue
            if damages:
                warnings.warn(
                    f"checkpoint_directory {self._directory}: {'; '.join(damages)}; training goes "
                    f"on from {name}, which is older",
                    stacklevel=2,
                )
            return (self._past.terms, self._past.seconds) if len(self._past.terms.data) else None
        if damages:
            raise ValueError(
                f"checkpoint_directory {self._directory} holds no state that is intact: "
                f"{'; '.join(damages)}. Remove it, or name another, to begin anew."
            )
        return None

    def save(self, records: Sequence[StepRecords], seconds: float) -> None:
        """Save the present state, if that is for this process to do.

        :param records: What all steps so far recorded.
        :param seconds: The time that they took.
        :raises OSError: If it cannot be written, such as to a full disk; what was saved before is
            as it was.
        """
        if not self._is_writer:
            return
        self._past.terms, self._past.seconds = joined(records), seconds
        try:
            self._manager.save(checkpoint_number=len(self._past.terms.data))
        except (OSError, tf.errors.OpError) as error:
            is_full = isinstance(error, tf.errors.ResourceExhaustedError)
            code = errno.ENOSPC if is_full else getattr(error, "errno", None) or errno.EIO
            raise OSError(
                code,
                f"{os.strerror(code)}: the state of training could not be saved; the model has "
                "what was learned, and what was saved before is as it was",
                str(self._directory),
            ) from error
        self._last_save = time.monotonic()

    def _saves(self) -> list[Path]:
        """What was saved, the last first; without its list, which a kill may leave behind."""
        found = [path.with_suffix("") for path in self._directory.glob(f"{_NAME}-*.index")]
        return sorted(found, key=lambda path: int(path.name.partition("-")[2]), reverse=True)

    def _check_settings(self, saved: Mapping[str, Any]) -> None:
        name, then, now = _first_difference(saved, self._past.settings)
        if isinstance(then, dict) and isinstance(now, dict):
            name, then, now = _first_difference(then, now)
        if then != now:
            raise ValueError(
                f"checkpoint_directory {self._directory} holds a run with {name}={then!r}, "
                f"got {now!r}."
            )


def run_identity(
    model: gpflow.Module, data: RegressionData | tf.data.Dataset, optimizer: Any
) -> dict[str, Any]:
    """What a run is of, in plain values: so that a checkpoint goes on with that run and no other.

    Names of classes; dtype and shape of each parameter, and whether it is fixed; of data that are
    no dataset, shapes and a hash.
    """
    described: dict[str, Any] = {
        "optimizer": type(optimizer).__name__,
        "model": [type(module).__name__ for module in (model, *model.submodules)],
        "parameters": {
            path: f"{parameter.dtype.name} {list(parameter.shape)}"
            + ("" if parameter.trainable else ", not trainable")
            for path, parameter in parameter_dict(model).items()
        },
    }
    if not isinstance(data, tf.data.Dataset):
        arrays = [np.ascontiguousarray(part, np.float64) for part in data]
        digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        described["data"] = f"{shapes}, SHA-256 {digest[:16]}"
    return described


def _first_difference(saved: Mapping[str, Any], present: Mapping[str, Any]) -> tuple[str, Any, Any]:
    names = {**saved, **present}
    name = next((name for name in names if saved.get(name) != present.get(name)), "")
    return name, saved.get(name), present.get(name)


class _Past(tf.train.experimental.PythonState):
    """Settings and history, within the checkpoint so that they are of the same step."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))  # as they will be read
        self.terms = BoundTerms(np.zeros(0), np.zeros((0, 0)))
        self.seconds = 0.0

    def serialize(self) -> bytes:
        buffer = io.BytesIO()
        settings = json.dumps(self.settings)
        np.savez(buffer, **self.terms._asdict(), seconds=self.seconds, settings=settings)
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        with np.load(io.BytesIO(string_value)) as saved:
            self.terms = BoundTerms(saved["data"], saved["log_ratios"])
            self.seconds = float(saved["seconds"])
            self.settings = json.loads(str(saved["settings"]))
