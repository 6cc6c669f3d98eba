"""Files that are there whole or not at all, and that tell when they have been damaged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["replacing", "seal", "sync", "unseal", "write_whole"]

_SEAL = "sha256"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a place beside a file; what is written there takes the file's place in one step.

    The new content is on the disk before the old one is gone. If the body raises, the file stays
    as it was.

    :param path: The file, which need not exist.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync(path.parent)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there as a whole or not at all.

    :param path: The file; one that is there is replaced.
    :param content: Text becomes UTF-8.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's entries, is on the disk.

    :param path: Of the file or folder. Systems that cannot open folders are not asked to.
    """
    if os.name == "nt" and path.is_dir():
        return
    # Windows flushes only what is open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields that JSON can hold, with their checksum.

    :param fields: Without a field of the checksum's name, ``sha256``.

    >>> unseal(seal({"depth": 3}))
    {'depth': 3}
    >>> unseal({**seal({"depth": 3}), "depth": 2})
    Traceback (most recent call last):
    ValueError: its checksum is not that of what it holds
    """
    return {**fields, _SEAL: _digest(fields)}


def unseal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`seal` was given.

    :raises ValueError: If the checksum is missing or is not that of the fields.
    """
    fields = dict(fields)
    digest = fields.pop(_SEAL, None)
    if digest is None:
        raise ValueError("it has no checksum")
    if digest != _digest(fields):
        raise ValueError("its checksum is not that of what it holds")
    return fields


def _digest(fields: Mapping[str, Any]) -> str:
    # As they will be read: names are text, tuples are lists.
    plain = json.loads(json.dumps(fields))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
