"""The one gate for what commands write: nothing of the user's, or of another run, is replaced."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import format_of, holds_run

__all__ = ["OUTPUTS", "check_outputs"]

OUTPUTS = ("out", "log", "json", "figure")
"""The options, of any command, that name what is written."""


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse places that a command must not write to, before anything is computed.

    :param options: Complete ones of any command.
    :raises UsageError: If a place is a file that is read, no file at all, within a directory that
        holds a run, a study or a model and is not the command's own, or cannot be written to.
    """
    outputs = {name: getattr(options, name, None) for name in OUTPUTS}
    paths = {f"--{name}": path for name, path in outputs.items() if isinstance(path, Path)}
    for option, path in paths.items():
        _check_other_files(option, path, options, paths)
        _check_place(option, path, options)
        _check_writable(option, path)


def _check_other_files(
    option: str, path: Path, options: argparse.Namespace, outputs: dict[str, Path]
) -> None:
    others = {name: getattr(options, name, None) for name in ("table", "config")}
    others.update({name: other for name, other in outputs.items() if name < option})
    for name, other in others.items():
        if isinstance(other, Path) and _is_same(path, other):
            what = "the table that is read" if name == "table" else f"also that of {name}"
            raise UsageError(f"{option} {path} is {what}; choose another place for it")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{option} {path} is neither a file nor a directory")


def _check_place(option: str, path: Path, options: argparse.Namespace) -> None:
    own = {folder.resolve() for folder in _own(options)}
    for folder in _around(path):
        if folder in own:
            continue
        what = next((what for what, is_one in _KINDS.items() if is_one(folder)), None)
        if what is not None:
            raise UsageError(
                f"{option} {path} is within {folder}, which holds {what}; choose another place "
                "for it"
            )


def _own(options: argparse.Namespace) -> list[Path]:
    """The directories that a command may write into, whatever they hold."""
    if options.command == "study-report":
        return list(options.studies)
    if options.command in ("study", "compare"):
        return [] if holds_run(options.out) else [options.out]
    chosen = (getattr(options, name, None) for name in ("out", "resume"))
    return [path for path in chosen if path is not None] if options.command == "fit" else []


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
        raise UsageError(f"{option} {path} cannot be written: {error.strerror}") from error


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.exists() and other.exists() and path.samefile(other)


def _holds_model(folder: Path) -> bool:
    return format_of(folder / "model.json") == "gpflow_dwp.model"


def _holds_study(folder: Path) -> bool:
    # Results that were copied from elsewhere have no lock.
    return (folder / "study.lock").is_file() or (folder / "results.jsonl").is_file()


def _holds_export(folder: Path) -> bool:
    return (folder / "saved_model.pb").is_file()


_KINDS: dict[str, Callable[[Path], bool]] = {
    "a run": holds_run,
    "a saved model": _holds_model,
    "a study": _holds_study,
    "an exported model": _holds_export,
}
