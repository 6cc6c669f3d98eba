"""The one gate for what commands write: nothing of the user's, or of another run, is replaced."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import holds_run

__all__ = ["OUTPUTS", "check_outputs"]

OUTPUTS = ("log", "out")
"""The options, of any command, that name what is written."""

_KINDS: dict[str, Callable[[Path], bool]] = {
    "a run": holds_run,
    "a saved model": lambda folder: (folder / "model.zip").is_file(),
    "an exported model": lambda folder: (folder / "saved_model.pb").is_file(),
}


def check_outputs(command: str, options: Mapping[str, Any]) -> None:
    """Refuse places that a command must not write to, before anything is computed.

    :raises UsageError: If a place is a file that is read, is within a directory that holds a run or
        a model and is not the command's own, cannot be written, or is there and not to be replaced.
    """
    read = {"the table that is read": options.get("table"), "that of config": options.get("config")}
    own = {options[name].resolve() for name in ("out", "resume") if options.get(name)}
    for name in OUTPUTS:
        path = options.get(name)
        if path is None:
            continue
        for what, other in read.items():
            if other is not None and _is_same(path, other):
                raise UsageError(f"--{name} {path} is {what}; choose another place for it")
        for folder in {*path.resolve().parents, *(path.parent.resolve() / path.name).parents}:
            _check_outside(name, path, folder)
        if path.is_dir() and not (command == "fit" and path.resolve() in own):
            _check_outside(name, path, path.resolve())
        is_folder = name == "out" and command != "predict"
        if path.exists() and not (path.is_dir() if is_folder else path.is_file()):
            wanted = "directory" if is_folder else "file"
            raise UsageError(f"--{name} {path} is there already, and no {wanted}")
        _check_writable(name, path)
        goes_on = options.get("resume") is not None
        if path.is_file() and not (options.get("overwrite") or goes_on):
            raise UsageError(f"{path} exists; give --overwrite to replace it")
        if command == "predict" and not path.resolve().parent.is_dir():
            raise UsageError(f"{path.resolve().parent} is not a directory")
    log, out = options.get("log"), options.get("out")
    if command == "fit" and log and out and {log.resolve(), *log.resolve().parents} & own:
        raise UsageError(f"--log {log} is in the directory of the run, {out}; choose another place")


def _check_outside(name: str, path: Path, folder: Path) -> None:
    for kind, is_one in _KINDS.items():
        if is_one(folder):
            raise UsageError(
                f"--{name} {path} is within {folder}, which holds {kind}; choose another place"
            )


def _check_writable(option: str, path: Path) -> None:
    place = path.resolve()
    around = [place, *place.parents] if place.is_dir() else place.parents
    folder = next(folder for folder in around if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--{option} {path} cannot be written: {error.strerror}") from error


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.exists() and other.exists() and path.samefile(other)
