"""The one gate for what commands write: nothing of the user's, or of another run, is replaced."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import format_of, holds_run

__all__ = ["OUTPUTS", "check_outputs"]

OUTPUTS = ("out", "log")
"""The options, of any command, that name what is written."""

_KINDS: dict[str, Callable[[Path], bool]] = {
    "a run": holds_run,
    "a saved model": lambda folder: format_of(folder / "model.json") == "gpflow_dwp.model",
    "an exported model": lambda folder: (folder / "saved_model.pb").is_file(),
}


def check_outputs(command: str, options: Mapping[str, Any]) -> None:
    """Refuse places that a command must not write to, before anything is computed.

    :raises UsageError: If a place is a file that is read, no file at all, within a directory that
        holds a run or a model and is not the command's own, or cannot be written to; if it
        is to be a file, also if that exists and is not to be replaced, or would be in no directory.
    """
    others = {"the table that is read": options.get("table")}
    others["also that of config"] = options.get("config")
    own = _own(command, options)
    for name in sorted(OUTPUTS):
        path = options.get(name)
        if not isinstance(path, Path):
            continue
        for what, other in others.items():
            if isinstance(other, Path) and _is_same(path, other):
                raise UsageError(f"--{name} {path} is {what}; choose another place for it")
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"--{name} {path} is neither a file nor a directory")
        if name == "out" and command == "fit" and path.is_file():
            raise UsageError(f"{path} is a file; --out takes a directory")
        for folder in _around(path):
            kinds = [
                kind for kind, is_one in _KINDS.items() if folder not in own and is_one(folder)
            ]
            if kinds:
                raise UsageError(
                    f"--{name} {path} is within {folder}, which holds {kinds[0]}; choose another "
                    "place for it"
                )
        _check_writable(name, path)
        if name != "out" or command == "predict":
            _check_file(path, options, parents=name == "log")
        others[f"also that of --{name}"] = path
    log, out = options.get("log"), options.get("out")
    if command == "fit" and log and out and out.resolve() in log.resolve().parents:
        raise UsageError(f"--log {log} is in the directory of the run, {out}; choose another place")


def _own(command: str, options: Mapping[str, Any]) -> list[Path]:
    """The directories that a command may write into, whatever they hold."""
    own: list[Path | None] = []
    if command == "fit":
        own = [options["out"], options["resume"]]
    return [path.resolve() for path in own if path is not None]


def _around(path: Path) -> Iterator[Path]:
    """All folders that a place is in, as it is named and where links lead; last itself."""
    for place in (path.parent.resolve() / path.name, path.resolve()):
        yield from place.parents
        if place.is_dir():
            yield place.resolve()


def _check_writable(option: str, path: Path) -> None:
    place = path.resolve()
    around = [place, *place.parents] if place.is_dir() else place.parents
    folder = next(folder for folder in around if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--{option} {path} cannot be written: {error.strerror}") from error


def _check_file(path: Path, options: Mapping[str, Any], *, parents: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a directory, not a file")
    goes_on = options.get("resume") is not None
    if path.exists() and not (goes_on or options.get("overwrite")):
        way = "give --overwrite to replace it" if "overwrite" in options else "choose another place"
        raise UsageError(f"{path} exists; {way}")
    if not parents and not path.resolve().parent.is_dir():
        raise UsageError(f"{path.resolve().parent} is not a directory")


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.exists() and other.exists() and path.samefile(other)
