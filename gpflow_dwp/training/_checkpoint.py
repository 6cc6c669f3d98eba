"""The state of a training run on disk, from which it goes on as if it had not been cut off."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import io
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import parameter_dict

from gpflow_dwp.base import TrainingData
from gpflow_dwp.files import held
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training.callbacks import Callback

__all__ = ["TrainingCheckpoint", "opened_checkpoint", "run_identity"]

_WITH_STATE = (tf.Module, tf.train.experimental.PythonState)
_NAME = "state"


@dataclasses.dataclass
class TrainingCheckpoint:
    """Saves and restores a run: parameters, optimiser, step, place in the data, callbacks, history.

    TensorFlow's ``CheckpointManager`` keeps the last two saves, of which the first is of the start.

    :param directory: Where, a folder that is there.
    :param parts: What is saved, by name; nothing of it has been used yet.
    :param settings: What must be the same in a run that goes on, in plain values.
    :param seconds_between_saves: After how long the next save is due.
    :param is_writer: Whether this process saves; another one that takes the same steps only goes
        on from what was saved.
    """

    directory: Path
    parts: Mapping[str, Any]
    settings: Mapping[str, Any]
    seconds_between_saves: float
    is_writer: bool

    def __post_init__(self) -> None:
        self._past = _Past(self.settings)
        self._checkpoint = tf.train.Checkpoint(**self.parts, past=self._past)
        self._last_save = time.monotonic()
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self.directory), max_to_keep=2, checkpoint_name=_NAME
        )
        if self.is_writer:
            for left in self.directory.glob(f"{_NAME}-*_temp"):  # by a save that was killed
                shutil.rmtree(left, ignore_errors=True)
            if not self._manager.checkpoints:
                self._manager.save(checkpoint_number=0)  # what cannot be saved is known now

    @property
    def is_due(self) -> bool:
        """Whether the last save, or the start, is long enough ago."""
        return self.is_writer and time.monotonic() - self._last_save >= self.seconds_between_saves

    def restore(self) -> tuple[BoundTerms, float] | None:
        """Go back to the last saved state that is intact, if any was saved.

        :return: What the steps up to it recorded, and the seconds that they took.
        :raises ValueError: If it was saved with other settings, or no save is intact.
        """
        saves = self._manager.checkpoints[::-1]
        for save in saves:
            past = _Past({})
            try:
                # Settings first: of another run the rest may have other shapes.
                tf.train.Checkpoint(past=past).read(save).expect_partial()
                self._check_settings(past.settings)
                self._checkpoint.restore(save).assert_consumed()
            except (tf.errors.OpError, IndexError) as error:  # the latter of a file cut short
                warnings.warn(f"{save} is damaged, and left out: {error}", stacklevel=2)
                continue
            return (self._past.terms, self._past.seconds) if len(self._past.terms.data) else None
        if saves:
            raise ValueError(
                f"checkpoint_directory {self.directory} holds no state that is intact. Remove it, "
                "or name another, to begin anew."
            )
        return None

    def save(self, terms: BoundTerms, seconds: float) -> None:
        """Save the present state, if that is for this process to do.

        :param terms: What all steps so far recorded.
        :param seconds: The time that they took.
        :raises OSError: If it cannot be written, such as to a full disk; what was saved before is
            as it was.
        """
        if not self.is_writer:
            return
        self._past.terms, self._past.seconds = terms, seconds
        try:
            self._manager.save(checkpoint_number=len(terms.data))
        except (OSError, tf.errors.OpError) as error:
            is_full = isinstance(error, tf.errors.ResourceExhaustedError)
            code = errno.ENOSPC if is_full else getattr(error, "errno", None) or errno.EIO
            raise OSError(
                code,
                f"{os.strerror(code)}: the state of training could not be saved; the model has "
                "what was learned, and what was saved before is as it was",
                str(self.directory),
            ) from error
        self._last_save = time.monotonic()

    def _check_settings(self, saved: Mapping[str, Any]) -> None:
        own = self._past.settings
        for name in {**saved, **own}:
            if saved.get(name) != own.get(name):
                raise ValueError(
                    f"checkpoint_directory {self.directory} holds a run with "
                    f"{name}={saved.get(name)!r}, got {own.get(name)!r}."
                )


@contextlib.contextmanager
def opened_checkpoint(
    directory: str | os.PathLike[str],
    parts: Mapping[str, Any],
    settings: Mapping[str, Any],
    callbacks: Sequence[Callback],
    *,
    seconds_between_saves: float,
    is_writer: bool,
) -> Iterator[TrainingCheckpoint]:
    """Open a :class:`TrainingCheckpoint` in a folder that is this run's alone, made if need be.

    :param callbacks: Those of the run, of which some may have a state.
    :raises ValueError: If the directory cannot be written.
    :raises BlockingIOError: If another run is in it.
    """
    folder = Path(directory)
    with_state = [callback for callback in callbacks if isinstance(callback, _WITH_STATE)]
    settings = {**settings, "callbacks": [type(callback).__name__ for callback in with_state]}
    parts = {**parts, **{f"callback_{i}": callback for i, callback in enumerate(with_state)}}
    with contextlib.ExitStack() as stack:
        try:
            if is_writer:
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(held(folder))
            checkpoint = TrainingCheckpoint(
                folder, parts, settings, seconds_between_saves, is_writer
            )
        except BlockingIOError:
            raise
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(
                f"checkpoint_directory {folder} cannot be written: {reason}."
            ) from error
        yield checkpoint


def run_identity(model: gpflow.Module, data: TrainingData, optimizer: Any) -> dict[str, Any]:
    """What a run is of, in plain values: so that a checkpoint goes on with that run and no other.

    Names of classes; dtype and shape of each parameter, and whether it is fixed; of the data shapes
    and a hash.
    """
    described: dict[str, Any] = {
        "optimizer": type(optimizer).__name__,
        "model": [type(module).__name__ for module in (model, *model.submodules)],
    }
    for path, parameter in parameter_dict(model).items():
        fixed = "" if parameter.trainable else ", not trainable"
        described[path] = f"{parameter.dtype.name} {list(parameter.shape)}{fixed}"
    arrays = [np.ascontiguousarray(part, np.float64) for part in data]
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    shapes = " and ".join(str(list(array.shape)) for array in arrays)
    return {**described, "data": f"{shapes}, SHA-256 {digest[:16]}"}


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
