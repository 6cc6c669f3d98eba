"""The directory of a run: how it is made, and what the finished one says of itself.

What ``--out runs/houses`` asks for is trained and written in ``runs/houses.unfinished``; the last
step renames that. A run that is there before stays whole until then, as ``runs/houses.replaced``
between the two renames.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.data.reading import Format, TableFile, read_file
from gpflow_dwp.data.table import Task
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import held, named, read_sealed, seal, sync, sync_tree, write_whole

if TYPE_CHECKING:
    from gpflow_dwp.base import Array
    from gpflow_dwp.evaluation import RawUnits
    from gpflow_dwp.models import VariationalModel

__all__ = [
    "CONFIGURATION",
    "DESCRIPTION",
    "FIGURES",
    "HISTORY",
    "METRICS",
    "MODEL",
    "Run",
    "TrainedRun",
    "check_outside",
    "check_place",
    "describe_model",
    "load_tensorflow",
    "new_run",
]

CONFIGURATION, DESCRIPTION, FIGURES, HISTORY = "config.yaml", "run.json", "figures", "history.csv"
METRICS, MODEL, STATE = "metrics.json", "model", "state"
_FORMAT = {"format": "gpflow_dwp.run", "format_version": 3}
_CONTENT = {CONFIGURATION, DESCRIPTION, FIGURES, HISTORY, METRICS, MODEL, STATE}


@dataclass(frozen=True)
class Run:
    """A run, by the directory that it has or will have, as the user names it."""

    directory: Path

    @property
    def work(self) -> Path:
        """The folder in which it is trained and written."""
        return self._beside("unfinished")

    @property
    def state(self) -> Path:
        """The folder of training's checkpoints."""
        return self.work / STATE

    @property
    def has_steps(self) -> bool:
        """Whether steps of an unfinished run are kept."""
        return self.state.is_dir() and any(path.name[0] != "." for path in self.state.iterdir())

    @property
    def folder(self) -> Path:
        """Where the files of the finished run are: elsewhere while it is being replaced."""
        place, replaced = self.directory, self._beside("replaced")
        return replaced if not place.exists() and replaced.is_dir() else place

    def finish(self) -> None:
        """Give the folder of a run that is written the name of its directory."""
        place, replaced = self.directory.resolve(), self._beside("replaced")
        with named(self.work):
            sync_tree(self.work)
        if place.exists():
            place.rename(replaced)
        self.work.rename(place)
        sync(place.parent)
        shutil.rmtree(replaced, ignore_errors=True)
        shutil.rmtree(place / STATE, ignore_errors=True)

    def discard(self) -> None:
        """Remove what is unfinished, and ``runs`` if nothing else is there."""
        shutil.rmtree(self.work, ignore_errors=True)
        if self.work.parent == Path("runs").resolve():
            with contextlib.suppress(OSError):
                self.work.parent.rmdir()

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

    def _beside(self, suffix: str) -> Path:
        place = self.directory.resolve()
        return place.with_name(f"{place.name}.{suffix}")


@contextlib.contextmanager
def new_run(wanted: Path | None, name: str, *, overwrite: bool) -> Iterator[Run]:
    """Make the folder of a new run, and hold it.

    :param wanted: The user's choice of directory; None for the next free ``runs/NAME-K``.
    :raises UsageError: If it is in use, holds anything but a run, or one that is not to go.
    """
    run = _next(name) if wanted is None else Run(wanted)
    if wanted is not None:
        _check_free(run, overwrite=overwrite)
        run.work.mkdir(parents=True, exist_ok=True)
    with run.hold():
        if run.has_steps and not overwrite:
            raise UsageError(
                f"{run.directory} holds an unfinished run; go on with it by --resume, or give "
                "--overwrite to replace it"
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


def check_place(out: Path, table: Path, *, overwrite: bool) -> None:
    """Refuse a file that must not or cannot be written, before anything is computed."""
    parent = out.resolve().parent
    check_outside(out, [parent, *parent.parents])
    if out.exists() and table.exists() and out.samefile(table):
        raise UsageError(f"--out {out} is the table that is read; choose another place for it")
    if out.exists() and not out.is_file():
        raise UsageError(f"--out {out} is there already, and no file")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists; give --overwrite to replace it")
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"--out {out}: {parent} is not a directory that can be written to")


def _next(name: str) -> Run:
    numbers = itertools.count(1)
    while True:
        run = Run(Path("runs") / f"{name}-{next(numbers)}")
        # Two runs that start at once both see a free number, but only one of them makes it.
        with contextlib.suppress(FileExistsError):
            if not run.folder.exists():
                run.work.mkdir(parents=True)
                return run


def _check_free(run: Run, *, overwrite: bool) -> None:
    place, replaced = run.directory.resolve(), run._beside("replaced")
    check_outside(run.directory, place.parents)
    if place in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"{run.directory} is where you are, or above it; choose another --out")
    if place.exists() and not place.is_dir():
        raise UsageError(f"--out {run.directory} is there already, and no directory")
    if replaced.is_dir() and not place.exists():
        replaced.rename(place)  # of a process that was killed between its last two steps
    shutil.rmtree(replaced, ignore_errors=True)
    names = [path.name for path in place.iterdir()] if place.is_dir() else []
    others = sorted({*names} - _CONTENT)
    if others:
        raise UsageError(
            f"{run.directory} holds something that is not a run ({others[0]}); choose another --out"
        )
    if names and not overwrite:
        raise UsageError(f"{run.directory} holds another run; give --overwrite to replace it")


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
    options: dict[str, Any]
    versions: dict[str, str]
    model: dict[str, Any]

    @property
    def task(self) -> Task:
        """What the target is."""
        return "regression" if self.classes is None else "classification"

    def write(self, directory: Path) -> None:
        """Write ``run.json``."""
        parts = {
            "encoder": self.encoder.to_dict(),
            "inputs": self.inputs.to_dict(),
            "target": None if self.target is None else self.target.to_dict(),
        }
        fields = {**_FORMAT, **vars(self), **parts}
        write_whole(directory / DESCRIPTION, json.dumps(seal(fields), indent=1))

    @classmethod
    def read(cls, run: Path) -> TrainedRun:
        """Read ``run.json`` of a directory.

        :raises UsageError: If there is none, or of another version.
        :raises ValueError: If it is damaged.
        """
        path = Run(run).folder / DESCRIPTION
        if not path.is_file():
            raise UsageError(f"{run} is not a run directory: it has no {DESCRIPTION}")
        fields = read_sealed(path)
        if {name: fields.pop(name, None) for name in _FORMAT} != _FORMAT:
            raise UsageError(f"{path} was not written by this version of gpflow-dwp")
        fields["encoder"] = ColumnEncoder.from_dict(fields["encoder"])
        for name in ("inputs", "target"):
            fields[name] = fields[name] and Standardiser.from_dict(fields[name])
        return cls(**fields | {"classes": fields["classes"] and tuple(fields["classes"])})

    def read_rows(self, path: Path, form: Format) -> tuple[TableFile, Array]:
        """Return a table, and its inputs in raw units, [N, D]."""
        missing = (*self.options["missing"], *form.missing)
        file = read_file(path, Format(**{**asdict(form), "missing": missing}))
        if not len(file.frame):
            raise TableError(f"{file.path}: no data rows below the header")
        return file, self.encoder.transform(file.frame, where=path)

    def load(self, run: Path) -> RawUnits:
        """Load the run's model, from the table's units to the target's."""
        load_tensorflow("TensorFlow is loading")
        from gpflow_dwp.evaluation import RawUnits
        from gpflow_dwp.models import load_model

        return RawUnits(load_model(Run(run).folder / MODEL), self.inputs, self.target)


def describe_model(model: VariationalModel) -> dict[str, Any]:
    """Return what a model is, in plain values."""
    from gpflow_dwp.models import model_summary

    layers = []
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        of = "" if kernel is None else f" ({type(kernel).__name__})"
        layers.append(f"{type(layer).__name__}{of}")
    parts = [part for part in model_summary(model).parts if part.name.startswith("layers[")]
    return {
        "class": type(model).__name__,
        "layers": layers,
        "nats": [None if part.kl is None else round(part.kl, 2) for part in parts],
        "collapsed_layers": [part.name for part in parts if part.collapsed],
        "likelihood": type(model.likelihood).__name__,
        "inputs": model.num_inputs,
        "trainable_parameters": sum(
            int(variable.shape.num_elements()) for variable in model.trainable_variables
        ),
        "dtype": next((variable.dtype.name for variable in model.trainable_variables), None),
    }


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
