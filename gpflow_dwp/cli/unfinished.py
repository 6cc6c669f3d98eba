"""What a run's directory holds until the run is finished: its options, and how far training is."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpflow_dwp.cli.aside import ASIDE, put_back, set_aside
from gpflow_dwp.cli.errors import UsageError

__all__ = ["CONFIGURATION", "UnfinishedRun"]

_FOLDER = "unfinished"

CONFIGURATION = "config.yaml"
"""The file of a run's options, in the directory of a finished run as well."""


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that can go on, below the directory that it will fill.

    It is a folder of its own, so that a run that is to be replaced stays whole meanwhile.

    :param directory: Of the run.
    """

    directory: Path

    @property
    def folder(self) -> Path:
        """Where everything of it is."""
        return self.directory / _FOLDER

    @property
    def configuration(self) -> Path:
        """The file of its options."""
        return self.folder / CONFIGURATION

    @property
    def state(self) -> Path:
        """The folder of training's checkpoints."""
        return self.folder / "state"

    @property
    def table_digest(self) -> Path:
        """The file of the table's SHA-256; a run without a table of the user's has none."""
        return self.folder / "table.sha256"

    @property
    def has_steps(self) -> bool:
        """Whether any step of training is kept."""
        return any(self.state.glob("save-*"))

    @classmethod
    def find(cls, directory: Path) -> UnfinishedRun:
        """Return what is unfinished in a directory.

        :raises UsageError: If nothing is.
        """
        run = cls(directory)
        if not run.configuration.is_file():
            raise UsageError(f"{directory} holds no run that could go on")
        return run

    @staticmethod
    def is_its_name(name: str) -> bool:
        """Whether an entry of a run's directory is an unfinished run, also one set aside.

        :param name: Of the entry.
        """
        return name.lstrip(".").partition(ASIDE)[0] == _FOLDER

    def begin(self, write_options: Callable[[Path], None], table: Path | None = None) -> None:
        """Start anew; what is unfinished and has steps is set aside until :meth:`discard`.

        :param write_options: Writes the options into the file that it is given.
        :param table: The user's table.
        """
        if not self.has_steps:
            self.discard()
        new = UnfinishedRun(self.directory / f".{_FOLDER}.{os.getpid()}.partial")
        try:
            new.folder.mkdir(parents=True)
            write_options(new.configuration)
            if table is not None:
                new.table_digest.write_text(_digest(table))
            set_aside(self.folder)
            new.folder.rename(self.folder)
        finally:
            shutil.rmtree(new.directory, ignore_errors=True)

    def check_table(self, table: Path | None) -> None:
        """Refuse a table that is no longer what the run began with.

        :param table: The user's table. Runs that began without a record of it take any.
        :raises UsageError: If the file has changed.
        """
        if table is None or not self.table_digest.is_file():
            return
        began, now = self.table_digest.read_text().strip(), _digest(table)
        if now != began:
            raise UsageError(
                f"{table} has changed since the run began: its SHA-256 was {began[:12]}... and is "
                f"{now[:12]}...; bring the old file back, or begin a new run"
            )

    def discard(self) -> None:
        """Remove it, and put back what it replaced."""
        shutil.rmtree(self.folder, ignore_errors=True)
        put_back(self.folder)


def _digest(table: Path) -> str:
    return hashlib.sha256(table.read_bytes()).hexdigest()
