"""The directory of a run: how it is made, and what the finished one says of itself.

What ``--out runs/houses`` asks for is trained and written in ``runs/houses.unfinished``; the last
step renames that.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.data.reading import Format, TableFile, read_file
from gpflow_dwp.data.table import Task
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import held, named, read_sealed, seal, sync, sync_tree, write_whole
from gpflow_dwp.validation import Array

if TYPE_CHECKING:
    from gpflow_dwp.evaluation import RawUnits

__all__ = [
    "DESCRIPTION",
    "FIGURES",
    "HISTORY",
    "METRICS",
    "MODEL",
    "OPTIONS",
    "PREDICTIONS",
    "TRAINED",
    "Run",
    "TrainedRun",
    "check_outside",
    "load_tensorflow",
    "new_run",
]

OPTIONS, DESCRIPTION, HISTORY = "options.json", "run.json", "history.csv"
METRICS, MODEL, PREDICTIONS, STATE = "metrics.json", "model", "predictions.csv", "state"
TRAINED = f"{STATE}/trained.json"
_FIGURES = ("learning_curve", "effect", "predictions", "calibration")
FIGURES = tuple(f"figures/{name}.png" for name in _FIGURES)
_FILES = (OPTIONS, HISTORY, METRICS, f"{MODEL}/model.zip", PREDICTIONS)
_FORMAT = {"format": "gpflow_dwp.run", "format_version": 4}


@dataclass(frozen=True)
class Run:
    """A run, by the directory that it has or will have, as the user names it."""

    directory: Path

    @property
    def work(self) -> Path:
        """The folder in which it is trained and written."""
        place = self.directory.resolve()
        return place.with_name(f"{place.name}.unfinished")

    @property
    def state(self) -> Path:
        """The folder of training's checkpoints."""
        return self.work / STATE

    @property
    def has_steps(self) -> bool:
        """Whether steps of an unfinished run are kept."""
        return self.state.is_dir() and any(path.name[0] != "." for path in self.state.iterdir())

    def finish(self) -> None:
        """Give the folder of a run that is written the name of its directory."""
        place = self.directory.resolve()
        with named(self.work):
            sync_tree(self.work)
        self.work.rename(place)
        sync(place.parent)
        shutil.rmtree(place / STATE, ignore_errors=True)

    def discard(self) -> None:
        """Remove what is unfinished."""
        shutil.rmtree(self.work, ignore_errors=True)

    @contextlib.contextmanager
    def hold(self) -> Iterator[Run]:
        """Hold the folder, so that no other process takes it."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(held(self.work))
            except BlockingIOError:
                message = f"{self.directory} is in use by another gpflow-dwp fit"
                raise UsageError(message) from None
            yield self


@contextlib.contextmanager
def new_run(wanted: Path | None, name: str) -> Iterator[Run]:
    """Make the folder of a new run, and hold it.

    :param wanted: The user's choice of directory; None for the next free ``runs/NAME-K``.
    :raises UsageError: If it is in use, or holds anything.
    """
    run = _next(name) if wanted is None else Run(wanted)
    place = run.directory.resolve()
    if wanted is not None:
        check_outside(wanted, place.parents)
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise UsageError(f"--out {wanted} is there already: choose another, or remove it")
        run.work.mkdir(parents=True, exist_ok=True)
    with run.hold():
        if run.has_steps:
            raise UsageError(
                f"{run.directory} holds an unfinished run: go on with it by --resume, or remove "
                f"{run.work}"
            )
        for path in run.work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield run


def check_outside(out: Path, places: Iterable[Path]) -> None:
    """Refuse a place to write, of which these are the folders around, within a run or a model."""
    for folder in places:
        if any((folder / name).exists() for name in (DESCRIPTION, "model.zip", "saved_model.pb")):
            raise UsageError(
                f"--out {out} is within {folder}, which holds a run or a model; choose another"
            )


def _next(name: str) -> Run:
    numbers = itertools.count(1)
    while True:
        run = Run(Path("runs") / f"{name}-{next(numbers)}")
        # Two runs that start at once both see a free number, but only one of them makes it.
        with contextlib.suppress(FileExistsError):
            if not run.directory.exists():
                run.work.mkdir(parents=True)
                return run


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """What predictions need besides the model, how it was made and what it is.

    Of labels there are classes, of numbers there is a standardiser of the target.
    """

    encoder: ColumnEncoder
    target_name: str
    classes: tuple[str, ...] | None
    inputs: Standardiser
    target: Standardiser | None
    missing: tuple[str, ...]
    versions: dict[str, str]
    model: str

    @property
    def task(self) -> Task:
        """What the target is."""
        return "regression" if self.classes is None else "classification"

    def write(self, directory: Path) -> None:
        """Write ``run.json``, with the digests of the other files of the run, which are there."""
        paths = {name: directory / name for name in _FILES}
        parts = {
            "files": {name: _digest(path) for name, path in paths.items() if path.is_file()},
            "encoder": asdict(self.encoder),
            "inputs": self.inputs.to_dict(),
            "target": None if self.target is None else self.target.to_dict(),
        }
        fields = {**_FORMAT, **vars(self), **parts}
        write_whole(directory / DESCRIPTION, json.dumps(seal(fields), indent=1))

    @classmethod
    def read(cls, run: Path) -> TrainedRun:
        """Read ``run.json`` of a directory.

        :raises UsageError: If there is none, or of another version.
        :raises ValueError: If it, or another file of the run, is damaged or of another run.
        """
        path = run / DESCRIPTION
        if not path.is_file():
            raise UsageError(f"{run} is not a run directory: it has no {DESCRIPTION}")
        fields = read_sealed(path)
        if {name: fields.pop(name, None) for name in _FORMAT} != _FORMAT:
            raise UsageError(f"{path} was not written by this version of gpflow-dwp")
        try:
            files = {**fields.pop("files", {})}
            fields["encoder"] = ColumnEncoder.from_dict(fields["encoder"])
            for name in ("inputs", "target"):
                fields[name] = fields[name] and Standardiser.from_dict(fields[name])
            for name in ("missing", "classes"):
                fields[name] = fields[name] and tuple(map(str, fields[name]))
            trained = cls(**fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from error
        for name, digest in files.items():
            if name not in _FILES or not (run / name).is_file():
                raise ValueError(f"{run} is damaged: its {name} is missing")
            if _digest(run / name) != digest:
                raise ValueError(f"{run / name} is damaged, or of another run")
        return trained

    def read_rows(self, path: Path, form: Format) -> tuple[TableFile, Array]:
        """Return a table, and its inputs in raw units, [N, D]."""
        file = read_file(path, replace(form, missing=(*self.missing, *form.missing)))
        if not len(file.frame):
            raise TableError(f"{file.path}: no data rows below the header")
        return file, self.encoder.transform(file.frame, where=path)

    def load(self, run: Path) -> RawUnits:
        """Load the run's model, from the table's units to the target's."""
        load_tensorflow("TensorFlow is loading")
        from gpflow_dwp.evaluation import RawUnits
        from gpflow_dwp.models import load_model

        return RawUnits(load_model(run / MODEL), self.inputs, self.target)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load_tensorflow(note: str) -> None:
    """Import TensorFlow, and discard what its libraries write to standard error meanwhile.

    They report on instruction sets and missing GPUs before any log level is obeyed. The note is
    shown on a terminal before.
    """
    if "tensorflow" not in sys.modules and sys.stderr.isatty():
        print(note, file=sys.stderr)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        import tensorflow as tf

        tf.config.list_physical_devices()  # looking for GPUs is what writes most
    finally:
        os.dup2(kept, 2)
        os.close(kept)
