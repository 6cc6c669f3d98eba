"""The directory of a run: held while it is trained, filled in one step after it.

A run is written into a folder of its own below the directory. That this folder gets its name is the
one step; what it holds is then put where users look for it, again if a process is killed meanwhile.
Until then its options, and how far training is, are in another folder below: an unfinished run.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.files import (
    copy_tree,
    held,
    named,
    read_sealed,
    seal,
    sync,
    sync_tree,
    write_whole,
)

__all__ = [
    "CONFIGURATION",
    "DESCRIPTION",
    "FIGURES",
    "FORMAT",
    "HISTORY",
    "METRICS",
    "MODEL",
    "UnfinishedRun",
    "format_of",
    "hold_directory",
    "holds_run",
    "is_of_run",
    "read_run",
    "resume_directory",
    "write_run",
]

CONFIGURATION = "config.yaml"
"""The file of a run's options, of a finished run as of an unfinished one."""
DESCRIPTION, FIGURES, HISTORY = "run.json", "figures", "history.csv"
METRICS, MODEL = "metrics.json", "model"
FORMAT = "gpflow_dwp.run"
_CONTENT = (CONFIGURATION, DESCRIPTION, FIGURES, HISTORY, METRICS, MODEL)
_LOCK = ".run.lock"
_WHOLE, _PLACED = ".run.whole", ".run.placed"
# What the names of folders begin with that are still written, or removed, by who holds a run.
_PARTIAL = ".run.partial"
_UNFINISHED = re.compile(r"unfinished(?:-(\d{1,3}))?")
_LOG, _BEGUN = "replaced-log", "begun.json"


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that can go on, below the directory that it will fill.

    A run that is to be replaced stays whole meanwhile. One that replaces an unfinished run has the
    next number, and goes before it: see :meth:`latest`.

    :param folder: Where everything of it is.
    """

    folder: Path

    @property
    def directory(self) -> Path:
        """The directory that it will fill."""
        return self.folder.parent

    @property
    def configuration(self) -> Path:
        """The file of its options."""
        return self.folder / CONFIGURATION

    @property
    def state(self) -> Path:
        """The folder of training's checkpoints."""
        return self.folder / "state"

    @property
    def has_steps(self) -> bool:
        """Whether any step of training is kept, in good order or not."""
        return any(self.state.glob("save-*"))

    @classmethod
    def latest(cls, directory: Path) -> UnfinishedRun | None:
        """Return what is unfinished in a directory, if anything is."""
        return next(reversed(_all(directory)), None)

    @classmethod
    def find(cls, directory: Path) -> UnfinishedRun:
        """Return what is unfinished in a directory.

        :raises UsageError: If nothing is, or its options are not those that it began with.
        """
        run = cls.latest(directory)
        if run is None:
            raise UsageError(f"{directory} holds no run that could go on")
        if _digest(run.configuration) != run._begun(CONFIGURATION):
            raise UsageError(
                f"{run.configuration} is not as it was when the run began; begin a new run for "
                "other options"
            )
        return run

    @classmethod
    def begin(
        cls,
        directory: Path,
        write_options: Callable[[Path], None],
        table: Path | None = None,
        log: Path | None = None,
    ) -> UnfinishedRun:
        """Start anew, in one step; what is unfinished is kept below it, if it has steps.

        :param directory: Of the run; it must be held.
        :param write_options: Writes the options into the file that it is given.
        :param log: A file that is to be replaced; what it holds is kept for :meth:`discard`.
        """
        before = _all(directory)
        new = cls(directory / f"{_PARTIAL}.begin")
        try:
            new.folder.mkdir()
            write_options(new.configuration)
            files = {CONFIGURATION: new.configuration, "table": table}
            digests = {name: _digest(path) for name, path in files.items() if path is not None}
            write_whole(new.folder / _BEGUN, json.dumps(seal(digests)))
            # A run that was killed before its first step had the log begun anew, too.
            logs = [*(run.folder / _LOG for run in before[-1:] if not run.has_steps), log]
            for path in [path for path in logs if log and path and path.is_file()][:1]:
                shutil.copyfile(path, new.folder / _LOG)
            sync_tree(new.folder)
            begun = cls(directory / _name(_number_of(before[-1].folder.name) + 1 if before else 1))
            new.folder.rename(begun.folder)
        finally:
            shutil.rmtree(new.folder, ignore_errors=True)
        sync(directory)
        for run in before:
            if not run.has_steps:
                run._remove()
        return begun

    def check_table(self, table: Path | None) -> None:
        """Refuse a table that is no longer what the run began with.

        :raises UsageError: If the file has changed.
        """
        if table is None:
            return
        began, now = self._begun("table"), _digest(table)
        if now != began:
            raise UsageError(
                f"{table} has changed since the run began: its SHA-256 was {began[:12]}... and is "
                f"{now[:12]}...; bring the old file back, or begin a new run"
            )

    def copy_to(self, directory: Path) -> None:
        """Copy what the run needs to go on.

        :param directory: Of the copy of the run.
        """
        shutil.copytree(self.folder, directory / _name(1), ignore=shutil.ignore_patterns(_LOG))

    def discard(self, log: Path | None) -> None:
        """Remove it, and put back the log that it replaced.

        :param log: As it was given to :meth:`begin`.
        """
        kept = self.folder / _LOG
        if log is not None and kept.is_file():
            write_whole(log, kept.read_bytes())
        self._remove()

    def _remove(self) -> None:
        if self.folder.is_dir():
            gone = self.folder.with_name(f"{_PARTIAL}.{self.folder.name}")
            self.folder.rename(gone)
            shutil.rmtree(gone)

    def _begun(self, name: str) -> str:
        """The digest of a file, as it was when the run began."""
        with user_mistakes():
            return str(read_sealed(self.folder / _BEGUN).get(name))


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
    partial = directory / f"{_PARTIAL}.whole"
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


def holds_run(directory: Path) -> bool:
    """Whether a directory holds a run of any version, finished or not."""
    return _is_finished(directory) or UnfinishedRun.latest(directory) is not None


def is_of_run(name: str) -> bool:
    """Whether an entry of a run's directory is the run's own."""
    return name in _CONTENT or _number_of(name) > 0


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
        for path in directory.glob(f"{_PARTIAL}*"):
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
            if not is_of_run(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        copy_tree(whole, directory)
        whole.rename(placed)
        sync(directory)
        shutil.rmtree(placed)


def _number_of(name: str) -> int:
    """Return what number an entry of a run's directory has as an unfinished run; 0 for another."""
    match = _UNFINISHED.fullmatch(name)
    return int(match[1] or 1) if match else 0


def _all(directory: Path) -> list[UnfinishedRun]:
    """Those of a directory, the first first."""
    folders = [path.parent for path in directory.glob(f"unfinished*/{CONFIGURATION}")]
    numbered = sorted((_number_of(folder.name), folder) for folder in folders)
    return [UnfinishedRun(folder) for number, folder in numbered if number]


def _name(number: int) -> str:
    return "unfinished" if number == 1 else f"unfinished-{number}"


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
