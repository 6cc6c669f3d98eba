"""The directory that a run leaves: held while it is trained, filled in one step after it.

A run is written into a folder of its own below the directory. That this folder gets its name is the
one step; what it holds is then put where users look for it, again if a process is killed meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.unfinished import CONFIGURATION, PARTIAL, UnfinishedRun, number_of
from gpflow_dwp.files import copy_tree, held, named, sync, sync_tree

__all__ = [
    "DESCRIPTION",
    "FIGURES",
    "FORMAT",
    "HISTORY",
    "METRICS",
    "MODEL",
    "check_apart",
    "format_of",
    "hold_directory",
    "holds_run",
    "read_run",
    "resume_directory",
    "write_run",
]

DESCRIPTION, FIGURES, HISTORY = "run.json", "figures", "history.csv"
METRICS, MODEL = "metrics.json", "model"
FORMAT = "gpflow_dwp.run"
_CONTENT = (CONFIGURATION, DESCRIPTION, FIGURES, HISTORY, METRICS, MODEL)
_LOCK = ".run.lock"
_WHOLE, _PLACED = ".run.whole", ".run.placed"


@contextlib.contextmanager
def hold_directory(wanted: Path | None, table: Path | None, *, overwrite: bool) -> Iterator[Path]:
    """Make the directory of a new run, and hold it, so that no other run takes it meanwhile.

    What cannot be used is refused before anything is computed. A directory that stays empty is
    removed in the end.

    :param wanted: The user's choice; None for the next free ``runs/NAME-K``.
    :param table: The user's table, whose name the run takes.
    :param overwrite: Whether a run that is there may be replaced.
    :raises UsageError: If the directory is in use, holds a run and ``overwrite`` is not set, or
        holds anything else.
    :raises OSError: If the directory cannot be made.
    """
    directory = wanted or _make_next("yacht" if table is None else table.stem)
    if directory.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"{directory} is where you are, or above it; choose another --out")
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with _held(directory):
            _check_free(directory, overwrite=overwrite)
            yield directory
    finally:
        with contextlib.suppress(OSError):
            directory.rmdir()


@contextlib.contextmanager
def resume_directory(directory: Path, table: Path | None = None) -> Iterator[UnfinishedRun]:
    """Hold the directory of a run that goes on.

    :raises UsageError: If it is in use, or holds no run that could go on with this table.
    """
    UnfinishedRun.find(directory)
    with _held(directory):
        run = UnfinishedRun.find(directory)
        run.check_table(table)
        yield run


@contextlib.contextmanager
def read_run(directory: Path) -> Iterator[Path]:
    """Keep a run from being replaced while it is read; give the folder of its files.

    :param directory: Of the run, or any other.
    """
    with contextlib.suppress(OSError):  # a run can be read where nothing can be written
        _place(directory)
        if (directory / _LOCK).exists():
            with held(directory / _LOCK):  # of a process that was killed
                (directory / _LOCK).unlink()
    if not directory.is_dir():
        yield directory
        return
    with held(directory, alone=False, wait=True):
        whole = directory / _WHOLE
        yield whole if whole.is_dir() else directory


def write_run(directory: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory that is held, in one step.

    :param directory: Where the run goes; a run that is there, finished or not, is replaced, not
        mixed with, but whatever else is there stays.
    :param fill: Writes everything into the directory that it is given.
    """
    partial = directory / f"{PARTIAL}.whole"
    try:
        with named(directory):
            partial.mkdir()
            fill(partial)
            sync_tree(partial)
            partial.rename(directory / _WHOLE)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync(directory)
    _place(directory)


def check_apart(name: str, path: Path | None, directory: Path) -> None:
    """Refuse a file of the user's in a place where the run has its own.

    :param name: What the message calls the file.
    :raises UsageError: If the run would replace the file.
    """
    if path is None or directory.resolve() not in path.resolve().parents:
        return
    part = path.resolve().relative_to(directory.resolve()).parts[0]
    if _is_content(part) or part.startswith(".run."):
        raise UsageError(
            f"{name} {path} is among the files that a run itself has in {directory}; choose "
            "another place for it"
        )


def holds_run(directory: Path) -> bool:
    """Whether a directory holds a run of any version, finished or not."""
    return _is_finished(directory) or UnfinishedRun.latest(directory) is not None


def format_of(path: Path) -> object:
    """Return what a file of JSON says that it is; None for any other file, or none at all."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return fields.get("format") if isinstance(fields, dict) else None


def _is_finished(directory: Path) -> bool:
    return (directory / _WHOLE).is_dir() or format_of(directory / DESCRIPTION) == FORMAT


def _make_next(name: str) -> Path:
    for number in itertools.count(1):
        directory = Path("runs") / f"{name}-{number}"
        # Two runs that start at once both see a free number, but only one of them makes it.
        with contextlib.suppress(FileExistsError):
            directory.mkdir(parents=True)
            break
    return directory


@contextlib.contextmanager
def _held(directory: Path) -> Iterator[None]:
    """Hold a directory for this process, and clear away what killed ones left in it."""
    lock = directory / _LOCK
    lock.touch()
    with contextlib.ExitStack() as hold:
        try:
            hold.enter_context(held(lock))
        except BlockingIOError:
            raise UsageError(f"{directory} is in use by another gpflow-dwp fit") from None
        hold.callback(lock.unlink, missing_ok=True)
        _place(directory)
        for path in directory.glob(f"{PARTIAL}*"):
            shutil.rmtree(path)
        yield


def _check_free(directory: Path, *, overwrite: bool) -> None:
    if all(path.name == _LOCK for path in directory.iterdir()):
        return
    if not holds_run(directory):
        raise UsageError(f"{directory} holds something that is not a run; choose another --out")
    unfinished = UnfinishedRun.latest(directory)
    if not overwrite and unfinished is not None and unfinished.has_steps:
        raise UsageError(
            f"{directory} holds an unfinished run; go on with it by --resume, or give "
            "--overwrite to replace it"
        )
    # A run that was killed before its first step has nothing to lose.
    if not overwrite and _is_finished(directory):
        raise UsageError(f"{directory} holds another run; give --overwrite to replace it")


def _place(directory: Path) -> None:
    """Put the files of a run where users look for them, once nobody reads the last run."""
    whole, placed = directory / _WHOLE, directory / _PLACED
    if not whole.is_dir() and not placed.is_dir():
        return
    with held(directory, wait=True):
        shutil.rmtree(placed, ignore_errors=True)
        if not whole.is_dir():
            return  # another process has done it
        for path in directory.iterdir():
            if not _is_content(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        copy_tree(whole, directory)
        whole.rename(placed)
        sync(directory)
        shutil.rmtree(placed)


def _is_content(name: str) -> bool:
    """Whether an entry of a run's directory is the run's own."""
    return name in _CONTENT or number_of(name) > 0
