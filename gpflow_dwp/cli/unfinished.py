"""What a run's directory holds until the run is finished: its options, and how far training is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError

__all__ = ["CONFIGURATION", "UnfinishedRun"]

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
        return self.directory / "unfinished"

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
        """Whether any step of training is kept."""
        return (self.state / "checkpoint").is_file()

    @classmethod
    def find(cls, directory: Path) -> UnfinishedRun:
        """Return what is unfinished in a directory.

        :raises UsageError: If nothing is.
        """
        run = cls(directory)
        if not run.configuration.is_file():
            raise UsageError(f"{directory} holds no run that could go on")
        return run

    def begin(self, write_options: Callable[[Path], None]) -> None:
        """Start anew.

        :param write_options: Writes the options into the file that it is given.
        """
        self.discard()
        self.folder.mkdir(parents=True)
        write_options(self.configuration)

    def discard(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)
