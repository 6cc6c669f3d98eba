"""Files and folders that are kept until what replaces them is complete.

What is set aside twice is there twice: a run that replaces a run that replaces a run may fail.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["ASIDE", "aside_of", "forget_aside", "put_back", "set_aside"]

ASIDE = ".replaced"
"""What ends the names of what is set aside."""


def aside_of(path: Path) -> Path:
    """Return where a file or folder is while it is set aside.

    :param path: Its own place.
    """
    return path.with_name(f".{path.name}{ASIDE}")


def set_aside(path: Path) -> None:
    """Move away what is there, if anything is.

    :param path: Of a file or folder.
    """
    if os.path.lexists(path):
        set_aside(aside_of(path))
        path.rename(aside_of(path))


def put_back(path: Path) -> None:
    """Undo the last :func:`set_aside`; what has come in its place meanwhile is removed.

    :param path: As it was given there. Nothing happens if nothing is set aside.
    """
    aside = aside_of(path)
    if os.path.lexists(aside):
        _remove(path)
        aside.rename(path)
        put_back(aside)


def forget_aside(path: Path) -> None:
    """Remove what was set aside, however often.

    :param path: As it was given to :func:`set_aside`.
    """
    aside = aside_of(path)
    if os.path.lexists(aside):
        forget_aside(aside)
        _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
