"""The directory that a run leaves: claimed before training, filled in one step after it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.aside import aside_of
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.unfinished import CONFIGURATION, UnfinishedRun
from gpflow_dwp.data import ColumnEncoder, Standardiser, Task

__all__ = [
    "DESCRIPTION",
    "FIGURES",
    "HISTORY",
    "METRICS",
    "MODEL",
    "RunDescription",
    "check_apart",
    "choose_directory",
    "release_directory",
    "write_run",
]

DESCRIPTION = "run.json"
FIGURES = "figures"
HISTORY = "history.csv"
METRICS = "metrics.json"
MODEL = "model"
_WRITTEN = (CONFIGURATION, DESCRIPTION, FIGURES, HISTORY, METRICS, MODEL)
_FORMAT = "gpflow_dwp.run"
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class RunDescription:
    """What predictions need besides the model.

    :param feature_names: The columns that the model takes, in its order.
    :param target_name: The column that it predicts.
    :param task: Regression or classification.
    :param classes: For classification, the label of each class.
    :param inputs: Standardiser of the inputs, as a dictionary.
    :param target: Standardiser of the target, as a dictionary; None for classification.
    :param options: The options of the command that made the run.
    :param versions: Versions of the packages that it ran with.
    :param categories: Of each categorical column, the categories.
    :param fill: What replaces a missing cell, by column.
    """

    feature_names: tuple[str, ...]
    target_name: str
    task: Task
    classes: tuple[str, ...] | None
    inputs: dict[str, list[float]]
    target: dict[str, list[float]] | None
    options: dict[str, Any]
    versions: dict[str, str]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fill: dict[str, float | str] = field(default_factory=dict)

    @property
    def encoder(self) -> ColumnEncoder:
        """What makes numbers of a table's columns."""
        return ColumnEncoder(self.feature_names, self.categories, self.fill)

    def standardise_inputs(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bring raw inputs, [N, D], to the model's units."""
        return Standardiser.from_dict(self.inputs).transform(X)

    def write(self, directory: Path) -> None:
        """Write ``run.json``."""
        fields = {"format": _FORMAT, "format_version": _FORMAT_VERSION, **asdict(self)}
        (directory / DESCRIPTION).write_text(json.dumps(fields, indent=1))

    @classmethod
    def read(cls, directory: Path) -> RunDescription:
        """Read ``run.json``.

        :raises UsageError: If the directory is not a run, or its ``run.json`` is damaged.
        """
        path = directory / DESCRIPTION
        if not path.is_file():
            raise UsageError(f"{directory} is not a run directory: it has no {DESCRIPTION}")
        try:
            fields = json.loads(path.read_text())
            if fields.pop("format") != _FORMAT or fields.pop("format_version") != _FORMAT_VERSION:
                raise UsageError(f"{path} was not written by this version of gpflow-dwp")
            for name in ("feature_names", "classes"):
                fields[name] = None if fields[name] is None else tuple(fields[name])
            categories = fields.get("categories", {})
            fields["categories"] = {name: tuple(values) for name, values in categories.items()}
            run = cls(**fields)
            run._check()
            return run
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path} is damaged: {error}") from error

    def _check(self) -> None:
        if len(Standardiser.from_dict(self.inputs).mean) != len(self.encoder.feature_names):
            raise ValueError("inputs and columns have different lengths")
        if self.target is not None and len(Standardiser.from_dict(self.target).mean) != 1:
            raise ValueError("target must hold one mean and one scale")
        labelled = self.task == "classification"
        if labelled != (self.classes is not None) or labelled == (self.target is not None):
            raise ValueError("task, classes and target do not fit together")


def check_apart(name: str, path: Path | None, directory: Path) -> None:
    """Refuse a file of the user's in a place where the run has its own.

    :param name: What the message calls the file.
    :param path: The file; None for none.
    :param directory: Of the run.
    :raises UsageError: If the run would replace the file.
    """
    if path is None or not path.resolve().is_relative_to(directory.resolve()):
        return
    parts = path.resolve().relative_to(directory.resolve()).parts
    if parts and _is_written(parts[0]):
        raise UsageError(
            f"{name} {path} is among the files that a run itself has in {directory}; choose "
            "another place for it"
        )


def choose_directory(wanted: Path | None, table: Path | None, *, overwrite: bool) -> Path:
    """Make the directory of a run, and refuse before anything is computed what cannot be used.

    It is made here, so that no other run takes it meanwhile.

    :param wanted: The user's choice; None for the next free ``runs/NAME-K``.
    :param table: The user's table, whose name the run takes.
    :param overwrite: Whether a run that is there may be replaced.
    :raises UsageError: If the directory holds a run and ``overwrite`` is not set, or holds
        anything else.
    :raises OSError: If the directory cannot be made.
    """
    if wanted is None:
        return _make_next("diabetes" if table is None else table.stem)
    if wanted.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"{wanted} is where you are, or above it; choose another --out")
    _recover(wanted.resolve())
    if not wanted.exists():
        wanted.mkdir(parents=True)
        return wanted
    if not wanted.is_dir():
        raise UsageError(f"{wanted} is a file; --out takes a directory")
    if any(wanted.iterdir()):
        if not _is_run(wanted):
            raise UsageError(f"{wanted} holds something that is not a run; choose another --out")
        if not overwrite and UnfinishedRun(wanted).has_steps:
            raise UsageError(
                f"{wanted} holds an unfinished run; go on with it by --resume, or give "
                "--overwrite to replace it"
            )
        if not overwrite:
            raise UsageError(f"{wanted} holds another run; give --overwrite to replace it")
    return wanted


def release_directory(directory: Path) -> None:
    """Give a directory back that :func:`choose_directory` made and that stayed empty."""
    with contextlib.suppress(OSError):
        directory.rmdir()


def _make_next(name: str) -> Path:
    numbers = itertools.count(1)
    while True:
        directory = Path("runs") / f"{name}-{next(numbers)}"
        _recover(directory)
        # Two runs that start at once both see a free number, but only one of them makes it.
        with contextlib.suppress(FileExistsError):
            directory.mkdir(parents=True)
            return directory


def _is_run(directory: Path) -> bool:
    if UnfinishedRun(directory).configuration.is_file():
        return True
    try:
        fields = json.loads((directory / DESCRIPTION).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(fields, dict) and fields.get("format") == _FORMAT


def write_run(directory: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory beside its place and move it there, so that no half-written run is seen.

    :param directory: Where the run goes; a run that is there is replaced, not mixed with, but
        whatever else is there stays.
    :param fill: Writes everything into the directory that it is given.
    """
    directory = directory.resolve()  # a link stays, and what it leads to is replaced
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    fill(partial)
    _recover(directory)
    if directory.exists():
        directory.rename(aside_of(directory))
    partial.rename(directory)
    _recover(directory)


def _recover(directory: Path) -> None:
    """Bring back the user's files, or the whole of a run, from where :func:`write_run` put it.

    It ends every writing, and makes up for one that was cut off.

    :raises UsageError: If a file of the user's has another of its name in its way.
    """
    replaced = aside_of(directory)
    if not replaced.exists():
        return
    if not directory.exists():
        replaced.rename(directory)
        return
    for path in [path for path in replaced.iterdir() if not _is_written(path.name)]:
        if os.path.lexists(directory / path.name):
            raise UsageError(f"{path} would replace another in {directory}; move one of them away")
        path.rename(directory / path.name)
    shutil.rmtree(replaced)


def _is_written(name: str) -> bool:
    """Whether an entry of a run's directory is the run's own."""
    return name in _WRITTEN or UnfinishedRun.is_its_name(name)
