"""A run until it is finished: its options, and how far training is, in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.files import read_sealed, seal, sync, sync_tree, write_whole

__all__ = ["CONFIGURATION", "PARTIAL", "UnfinishedRun", "number_of"]

CONFIGURATION = "config.yaml"
"""The file of a run's options, in the directory of a finished run as well."""

PARTIAL = ".run.partial"
"""What the names of folders begin with that are still written, or removed, by who holds a run."""

_NAME = re.compile(r"unfinished(?:-(\d{1,3}))?")
_LOG = "replaced-log"
_BEGUN = "begun.json"


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
        if run._begun(CONFIGURATION) != _digest(run.configuration):
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
        new = cls(directory / f"{PARTIAL}.begin")
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
            begun = cls(directory / _name(number_of(before[-1].folder.name) + 1 if before else 1))
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
            gone = self.folder.with_name(f"{PARTIAL}.{self.folder.name}")
            self.folder.rename(gone)
            shutil.rmtree(gone)

    def _begun(self, name: str) -> str:
        """The digest of a file, as it was when the run began."""
        with user_mistakes():
            return str(read_sealed(self.folder / _BEGUN).get(name))


def number_of(name: str) -> int:
    """Return what number an entry of a run's directory has as an unfinished run; 0 for another."""
    match = _NAME.fullmatch(name)
    return int(match[1] or 1) if match else 0


def _all(directory: Path) -> list[UnfinishedRun]:
    """Those of a directory, the first first."""
    folders = [path.parent for path in directory.glob(f"unfinished*/{CONFIGURATION}")]
    numbered = sorted((number_of(folder.name), folder) for folder in folders)
    return [UnfinishedRun(folder) for number, folder in numbered if number]


def _name(number: int) -> str:
    return "unfinished" if number == 1 else f"unfinished-{number}"


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
