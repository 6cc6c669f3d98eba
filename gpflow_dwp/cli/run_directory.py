"""The directory of a run: written in a folder beside it, which takes its name in one step.

What ``--out runs/houses`` asks for is trained and written in ``runs/houses.unfinished``; the last
step renames that. A run that is there before stays whole until then, as ``runs/houses.replaced``
between the two renames.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.files import held, named, sync, sync_tree

__all__ = [
    "CONFIGURATION",
    "DESCRIPTION",
    "FIGURES",
    "FORMAT",
    "HISTORY",
    "METRICS",
    "MODEL",
    "Run",
    "format_of",
    "holds_run",
    "new_run",
    "resume_run",
]

CONFIGURATION, DESCRIPTION, FIGURES, HISTORY = "config.yaml", "run.json", "figures", "history.csv"
METRICS, MODEL, STATE = "metrics.json", "model", "state"
FORMAT = "gpflow_dwp.run"
_CONTENT = {CONFIGURATION, DESCRIPTION, FIGURES, HISTORY, METRICS, MODEL, STATE}


@dataclass(frozen=True)
class Run:
    """A run, by the directory that it has or will have.

    :param directory: As the user names it; it may be a link.
    """

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
        return _has_steps(self.work)

    @property
    def folder(self) -> Path:
        """Where the files of the finished run are: elsewhere while it is being replaced."""
        place, replaced = self.directory, self._beside("replaced")
        return replaced if not place.exists() and replaced.is_dir() else place

    @property
    def can_go_on(self) -> bool:
        """Whether there is an unfinished run, or one that Ctrl-C ended and that has its steps."""
        return (self.work / CONFIGURATION).is_file() or _has_steps(self.directory)

    @property
    def configuration(self) -> Path:
        """The file of the options of the run that can go on.

        :raises UsageError: If there is none.
        """
        if not self.can_go_on:
            raise UsageError(f"{self.directory} holds no run that could go on")
        own = self.work / CONFIGURATION
        return own if own.is_file() else self.directory / CONFIGURATION

    def finish(self, *, keep_state: bool) -> None:
        """Give the folder of a run that is written the name of its directory.

        :param keep_state: Whether it may go on from its steps later.
        """
        place, replaced = self.directory.resolve(), self._beside("replaced")
        with named(self.work):
            sync_tree(self.work)
        if place.exists():
            place.rename(replaced)
        self.work.rename(place)
        sync(place.parent)
        shutil.rmtree(replaced, ignore_errors=True)
        if not keep_state:
            shutil.rmtree(place / STATE, ignore_errors=True)

    def discard(self) -> None:
        """Remove what is unfinished, and ``runs`` if nothing else is there."""
        shutil.rmtree(self.work, ignore_errors=True)
        if self.work.parent == Path("runs").resolve():
            with contextlib.suppress(OSError):
                self.work.parent.rmdir()

    def _beside(self, suffix: str) -> Path:
        place = self.directory.resolve()
        return place.with_name(f"{place.name}.{suffix}")


@contextlib.contextmanager
def new_run(wanted: Path | None, name: str, *, overwrite: bool) -> Iterator[Run]:
    """Make the folder of a new run, and hold it, so that no other process takes it.

    :param wanted: The user's choice of directory; None for the next free ``runs/NAME-K``.
    :param name: NAME.
    :param overwrite: Whether a run that is there, finished or not, may be replaced.
    :raises UsageError: If the directory is in use, holds anything but a run, or a run and
        ``overwrite`` is not set.
    :raises OSError: If the folder cannot be made.
    """
    run = _next(name) if wanted is None else Run(wanted)
    if wanted is not None:
        _check_free(run, overwrite=overwrite)
        run.work.mkdir(parents=True, exist_ok=True)
    with _held(run):
        if run.has_steps and not overwrite:
            raise UsageError(
                f"{run.directory} holds an unfinished run; go on with it by --resume, or give "
                "--overwrite to replace it"
            )
        for path in run.work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield run


@contextlib.contextmanager
def resume_run(directory: Path) -> Iterator[Run]:
    """Hold a run that goes on.

    :raises UsageError: If it is in use, or there is none.
    """
    run = Run(directory)
    source = run.configuration
    if source.parent != run.work:
        copy = run._beside("copied")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory / STATE, copy / STATE)
        shutil.copy2(source, copy)
        copy.rename(run.work)
    with _held(run):
        yield run


def holds_run(directory: Path) -> bool:
    """Whether a directory is that of a run, finished or not."""
    is_unfinished = directory.suffix == ".unfinished" and (directory / CONFIGURATION).is_file()
    return is_unfinished or format_of(directory / DESCRIPTION) == FORMAT


def format_of(path: Path) -> object:
    """Return what a file of JSON says that it is; None for any other file, or none at all."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return fields.get("format") if isinstance(fields, dict) else None


def _has_steps(folder: Path) -> bool:
    state = folder / STATE
    return state.is_dir() and any(path.name[0] != "." for path in state.iterdir())


def _next(name: str) -> Run:
    for number in itertools.count(1):
        run = Run(Path("runs") / f"{name}-{number}")
        if run.folder.exists():
            continue
        # Two runs that start at once both see a free number, but only one of them makes it.
        with contextlib.suppress(FileExistsError):
            run.work.mkdir(parents=True)
            break
    return run


def _check_free(run: Run, *, overwrite: bool) -> None:
    place = run.directory.resolve()
    if place in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"{run.directory} is where you are, or above it; choose another --out")
    if place.is_mount():
        raise UsageError(f"{run.directory} is a mount point; choose a directory in it as --out")
    replaced = run._beside("replaced")
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


@contextlib.contextmanager
def _held(run: Run) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(run.work))
        except BlockingIOError:
            raise UsageError(f"{run.directory} is in use by another gpflow-dwp fit") from None
        yield
