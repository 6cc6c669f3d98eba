"""The files of a saved model: its description, and the weights that this names."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import held, read_archive, read_arrays, seal, sync, unseal, write_whole

__all__ = [
    "DESCRIPTION",
    "IN_BYTES",
    "SavedParts",
    "check_not_foreign",
    "read_bytes",
    "read_files",
    "replace_files",
    "to_files",
]

_FORMAT = "gpflow_dwp.model"
_FORMAT_VERSION = 2
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.npz")
# What a save leaves that was killed.
_PARTIAL = re.compile(rf"\.(model\.json|{_WEIGHTS.pattern})\.\d+\.partial")
_LARGEST_DESCRIPTION = 2**30
_FIELDS: dict[str, type] = {
    "dtype": str,
    "gpflow_config": dict,
    "model": dict,
    "priors": dict,
    "trainable": dict,
    "weights": dict,
}


DESCRIPTION = "model.json"
"""The file that describes a model, and names that of its weights."""

IN_BYTES = Path("<bytes>")
"""Where messages say that a model is that has no directory."""


class SavedParts(NamedTuple):
    """What a saved model's files hold.

    :param description: What is told of the model.
    :param weights: Unconstrained values of all parameters.
    """

    description: dict[str, Any]
    weights: dict[str, npt.NDArray[Any]]


def to_files(description: Mapping[str, Any], weights: bytes) -> dict[str, bytes]:
    """Contents by names: the weights, then the description, which names them.

    :param description: What is told of the model, as JSON can hold it.
    :param weights: An archive of its weights.
    :raises SavedModelError: If the description is too long to be read again.
    """
    digest = hashlib.sha256(weights).hexdigest()
    fields = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        **description,
        "weights": {"file": _name_of_weights(digest), "sha256": digest},
    }
    text = json.dumps(seal(fields), indent=1).encode()
    if len(text) > _LARGEST_DESCRIPTION:
        raise SavedModelError(
            f"the model's description would take {len(text)} bytes, more than "
            f"{_LARGEST_DESCRIPTION}; it cannot be saved."
        )
    return {_name_of_weights(digest): weights, DESCRIPTION: text}


def check_not_foreign(directory: Path) -> None:
    """Refuse a place that holds anything but a saved model, or what is left of saving one.

    :raises SavedModelError: If that would mix it with something else.
    """
    if directory.exists() and (not directory.is_dir() or _is_foreign(directory)):
        raise SavedModelError(f"{directory} exists and is not a saved model; choose another name.")


def replace_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Put a saved model in the place of the one that is there, in one step.

    Models that several processes save go there one after the other. The directory is made if it
    is missing.

    :raises SavedModelError: If something else is there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sync(directory.parent)
    with held(directory, wait=True):
        check_not_foreign(directory)
        for name, content in files.items():
            write_whole(directory / name, content)
        for path in directory.iterdir():
            if _is_left_over(path) and path.name not in files:
                path.unlink()


def read_files(directory: Path) -> SavedParts:
    """Read a saved model.

    :raises SavedModelError: If it is none, or damaged.
    """

    def read(name: str) -> bytes | None:
        path = directory / name
        if not path.is_file():
            return None
        if name == DESCRIPTION and path.stat().st_size > _LARGEST_DESCRIPTION:
            raise SavedModelError(f"{path} is longer than any description of a model.")
        return path.read_bytes()

    try:
        with contextlib.ExitStack() as stack:
            if directory.is_dir():  # another process may be about to replace what is there
                stack.enter_context(held(directory, alone=False, wait=True))
            return _read(directory, read)
    except (OSError, MemoryError) as error:
        raise SavedModelError(f"{directory} cannot be read: {error}") from error


def read_bytes(content: bytes) -> SavedParts:
    """Read a saved model from an archive of its files, which is not compressed.

    :raises SavedModelError: If it is none, or damaged.
    """
    try:
        files = read_archive(content)
    except ValueError as error:
        raise SavedModelError(f"The bytes are not those of a saved model: {error}") from error
    return _read(IN_BYTES, files.get)


def _read(where: Path, read: Callable[[str], bytes | None]) -> SavedParts:
    content = read(DESCRIPTION)
    if content is None:
        raise SavedModelError(f"{where} is not a saved model: it has no {DESCRIPTION}.")
    description = _parse_description(where / DESCRIPTION, content)
    digest = description["weights"].get("sha256")
    name = description["weights"].get("file")
    # A path would lead out of the directory.
    if not (isinstance(digest, str) and name == _name_of_weights(digest)) or (
        not _WEIGHTS.fullmatch(name)
    ):
        raise SavedModelError(f"{where / DESCRIPTION} is damaged: it names no weights.")
    content = read(name)
    if content is None:
        raise SavedModelError(f"{where / name} is missing.")
    if hashlib.sha256(content).hexdigest() != digest:
        raise SavedModelError(
            f"{where / name} is damaged: its checksum is not the one in {DESCRIPTION}."
        )
    try:
        return SavedParts(description, read_arrays(content))
    except ValueError as error:
        raise SavedModelError(f"{where / name} is damaged: {error}.") from error


def _parse_description(path: Path, content: bytes) -> dict[str, Any]:
    try:
        description = json.loads(content)
        if not isinstance(description, dict) or description.get("format") != _FORMAT:
            raise SavedModelError(f"{path} does not describe a model of this package.")
        if description.get("format_version") != _FORMAT_VERSION:
            raise SavedModelError(
                f"{path} has format version {description.get('format_version')!r:.80}; this "
                f"version of the package reads {_FORMAT_VERSION}."
            )
        description = unseal(description)
    except SavedModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise SavedModelError(f"{path} is damaged: {error}") from error
    for name, kind in _FIELDS.items():
        if not isinstance(description.get(name), kind):
            lack = "has no proper" if name in description else "lacks"
            raise SavedModelError(f"{path} is damaged: it {lack} {name}.")
    return description


def _is_foreign(directory: Path) -> bool:
    if not (directory / DESCRIPTION).exists():
        # An interrupted first save leaves no more than this.
        return not all(map(_is_left_over, directory.iterdir()))
    try:
        description = json.loads((directory / DESCRIPTION).read_bytes())
    except (ValueError, RecursionError):
        return True
    return not isinstance(description, dict) or description.get("format") != _FORMAT


def _is_left_over(path: Path) -> bool:
    return bool(_WEIGHTS.fullmatch(path.name) or _PARTIAL.fullmatch(path.name))


def _name_of_weights(digest: str) -> str:
    return f"weights-{digest[:16]}.npz"
