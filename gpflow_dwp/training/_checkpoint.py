"""The state of a training run on disk, from which it goes on as if it had not been cut off."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.utilities import parameter_dict

from gpflow_dwp.files import held, read_sealed, seal, sync, write_whole
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training._records import StepRecords, joined
from gpflow_dwp.training.callbacks import Callback
from gpflow_dwp.training.loop import CompiledLoop
from gpflow_dwp.validation import check_path

__all__ = ["TrainingCheckpoint", "run_identity"]

_WITH_STATE = (tf.Module, tf.train.experimental.PythonState)

# A save is a folder that appears, whole and on the disk, in one step.
_SAVE = re.compile(r"save-(\d{1,9})")
_PARTIAL = ".save.partial"
_STATE = "state"
_DESCRIPTION = "saved.json"

# How TensorFlow calls what the system says of files.
_NUMBERS: dict[type, int] = {
    tf.errors.FailedPreconditionError: errno.ENOTDIR,
    tf.errors.NotFoundError: errno.ENOENT,
    tf.errors.PermissionDeniedError: errno.EACCES,
    tf.errors.ResourceExhaustedError: errno.ENOSPC,
}


class TrainingCheckpoint:
    """Saves and restores a run: parameters, optimiser, step, place in the data, callbacks, history.

    The last two saves are kept. A context, in which the directory is this run's alone.

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
        check_path(checkpoint_directory=directory)
        self._directory = Path(directory)
        if self._directory.exists() and not self._directory.is_dir():
            raise ValueError(f"checkpoint_directory must be a folder, got a file, {directory}.")
        with_state = [callback for callback in callbacks if isinstance(callback, _WITH_STATE)]
        names = [type(callback).__name__ for callback in with_state]
        self._settings = {**settings, "callbacks": names}
        self._past = _Past()
        self._place = {} if place is None else {"batches": place}
        self._checkpoint = tf.train.Checkpoint(
            **loop.state,
            past=self._past,
            **self._place,
            **{f"callback_{i}": callback for i, callback in enumerate(with_state)},
        )
        self._seconds_between_saves = seconds_between_saves
        self._is_writer = is_writer
        self._last_save = time.monotonic()
        self._latest: Path | None = None
        self._held = contextlib.ExitStack()

    def __enter__(self) -> TrainingCheckpoint:
        if not self._is_writer:
            return self
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(held(self._directory))
            with self._begun_save() as folder:
                write_whole(folder / _DESCRIPTION, bytes(4096))  # a full disk, too, is known now
                if self._place:  # which cannot be saved of some datasets
                    tf.train.Checkpoint(**self._place).write(str(folder / _STATE))
        except BlockingIOError as error:
            raise BlockingIOError(
                f"checkpoint_directory {self._directory} is in use by another run"
            ) from error
        except (OSError, ValueError, tf.errors.FailedPreconditionError) as error:
            self._held.close()
            reason = getattr(error, "strerror", None) or error
            if isinstance(error, tf.errors.FailedPreconditionError):
                reason = (
                    f"TensorFlow cannot save the place in this dataset ({error.message.strip()})"
                )
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
        for save in reversed(self._saves()):
            try:
                settings = _read_settings(save)
            except (OSError, ValueError) as error:
                damages.append(f"{save.name} is damaged ({error})")
                continue
            self._check_settings(settings)
            if damages:
                warnings.warn(
                    f"checkpoint_directory {self._directory}: {'; '.join(damages)}; training goes "
                    f"on from {save.name}, which is older",
                    stacklevel=2,
                )
            self._checkpoint.read(str(save / _STATE)).assert_consumed()
            self._latest = save
            return self._past.terms, self._past.seconds
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
        saves = self._saves()
        number = 1 + max((_number(save) for save in saves), default=0)
        save = self._directory / f"save-{number}"
        try:
            with self._begun_save() as folder:
                self._checkpoint.write(str(folder / _STATE))
                fields = {"settings": self._settings, "files": _digests(folder)}
                for path in folder.iterdir():
                    sync(path)
                write_whole(folder / _DESCRIPTION, json.dumps(seal(fields)))
                folder.rename(save)
                sync(self._directory)
        except (OSError, tf.errors.OpError) as error:
            code = _NUMBERS.get(type(error), getattr(error, "errno", None) or errno.EIO)
            raise OSError(
                code,
                f"{os.strerror(code)}: the state of training could not be saved; the model has "
                "what was learned, and what was saved before is as it was",
                str(self._directory),
            ) from error
        for old in saves:
            if old != self._latest:
                shutil.rmtree(old, ignore_errors=True)
        self._latest = save
        self._last_save = time.monotonic()

    @contextlib.contextmanager
    def _begun_save(self) -> Iterator[Path]:
        """An empty folder, which is gone afterwards unless it was renamed."""
        folder = self._directory / _PARTIAL
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _saves(self) -> list[Path]:
        """What was saved, in order, intact or not."""
        if not self._directory.exists():  # yet; its writer makes it
            return []
        found = [path for path in self._directory.iterdir() if _SAVE.fullmatch(path.name)]
        return sorted(found, key=_number)

    def _check_settings(self, saved: Mapping[str, Any]) -> None:
        name, then, now = _first_difference(saved, self._settings)
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


def _number(save: Path) -> int:
    return int(save.name.partition("-")[2])


def _read_settings(save: Path) -> dict[str, Any]:
    """The settings of what was saved, once it is known to be intact."""
    described = read_sealed(save / _DESCRIPTION)
    if described.get("files") != _digests(save):
        raise ValueError("its files are not those that were written")
    return dict(described["settings"])


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != _DESCRIPTION
    }


def _first_difference(saved: Mapping[str, Any], present: Mapping[str, Any]) -> tuple[str, Any, Any]:
    names = {**saved, **present}
    name = next((name for name in names if saved.get(name) != present.get(name)), "")
    return name, saved.get(name), present.get(name)


class _Past(tf.train.experimental.PythonState):
    """History, within the checkpoint so that it is of the same step."""

    def __init__(self) -> None:
        self.terms = BoundTerms(np.zeros(0), np.zeros((0, 0)))
        self.seconds = 0.0

    def serialize(self) -> bytes:
        buffer = io.BytesIO()
        np.savez(buffer, **self.terms._asdict(), seconds=self.seconds)
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        with np.load(io.BytesIO(string_value)) as saved:
            self.terms = BoundTerms(saved["data"], saved["log_ratios"])
            self.seconds = float(saved["seconds"])
