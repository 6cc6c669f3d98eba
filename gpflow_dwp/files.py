"""Files that are there whole or not at all, and that tell when they have been damaged."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command's help does not wait for NumPy
    import numpy.typing as npt

__all__ = [
    "check_can_be_made",
    "held",
    "named",
    "pack",
    "read_archive",
    "read_arrays",
    "read_sealed",
    "replacing",
    "seal",
    "sync",
    "sync_tree",
    "unpack",
    "write_whole",
]

_SEAL, _ARRAYS = "sha256", "arrays.npz"
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a place beside a file; what is written there takes the file's place in one step.

    The new content is on the disk before the old one is gone. If the body raises, the file stays
    as it was. What a process that was killed has left there is written over.

    :param path: The file, which need not exist.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with named(path):
            yield partial
            sync(partial)
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync(path.parent)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Name a path in errors of the system that name none, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def check_can_be_made(path: Path) -> None:
    """Raise an :class:`OSError`, now and not once all is computed, if a path cannot be written."""
    attempt = path.with_name(f".{path.name}.attempt")
    try:
        attempt.mkdir(exist_ok=True)
        attempt.rmdir()
    except OSError as error:
        error.filename = str(path)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, text in UTF-8, so that it is there as a whole or the one before it stays."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's entries, is on disk."""
    if os.name == "nt":  # which opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until a folder is on the disk with everything below it."""
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(Path(parent, name))
        sync(Path(parent))


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder alone; the system lets go of it however the process ends.

    Where the system or file system has no locks, nothing is held.

    :raises BlockingIOError: If another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{folder} is in use by another process") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        if not (folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat())):
            raise BlockingIOError(f"{folder} was replaced by another process")
        yield
    finally:
        os.close(descriptor)


def read_archive(content: bytes) -> dict[str, bytes]:
    """Read the files of a zip archive that is not compressed; they take no more memory than it.

    :return: Contents by names.
    :raises ValueError: If it is no such archive, is damaged, or would unpack to more than it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("it is compressed")
            if sum(member.file_size for member in members) > len(content):
                raise ValueError("its parts are larger than the whole")
            return {member.filename: archive.read(member) for member in members}
    except Exception as error:  # of a dozen kinds, as the damage falls
        raise ValueError(str(error)) from error


def read_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Read arrays of numbers or text from what ``np.savez`` writes, as :func:`read_archive` does.

    :raises ValueError: If it is no such archive, is damaged, or would unpack to more than it is.
    """
    import numpy as np

    try:
        read_archive(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a part is no array")
        return arrays
    except Exception as error:  # of a dozen kinds, as the damage falls
        raise ValueError(f"it is no archive of arrays: {error}") from error


def pack(
    name: str,
    description: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    files: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a zip archive of a description, which gets a name, of arrays, and of other files."""
    import numpy as np

    packed, buffer = io.BytesIO(), io.BytesIO()
    np.savez(packed, **arrays)
    described = {name: json.dumps(description, indent=1).encode(), _ARRAYS: packed.getvalue()}
    with zipfile.ZipFile(buffer, "w") as archive:
        for each, content in {**(files or {}), **described}.items():
            # Without the time of day, so that one content has one archive.
            archive.writestr(zipfile.ZipInfo(each), content)
    return buffer.getvalue()


def unpack(
    content: bytes, name: str, form: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], dict[str, bytes]]:
    """Read what :func:`pack` was given: the description, arrays and other files.

    :param form: What the description must have.
    :raises ValueError: If it is damaged, or of another form.
    """
    files = read_archive(content)
    try:
        description, arrays = json.loads(files.pop(name)), read_arrays(files.pop(_ARRAYS))
        if (found := {each: description[each] for each in form}) != form:
            raise ValueError(f"its format is not {form}, but {found!r:.200}")
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"its {name} is damaged: {error!r}") from error
    return description, arrays, files


def seal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields that JSON can hold, with their checksum, ``sha256``."""
    return {**fields, _SEAL: _digest(fields)}


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what :func:`seal` was given from the file of JSON that it was written to.

    :raises ValueError: If it is damaged; the message names it.
    :raises OSError: If it cannot be read.
    """
    try:
        fields = json.loads(path.read_bytes())
        if not isinstance(fields, dict) or fields.pop(_SEAL, None) != _digest(fields):
            raise ValueError("its checksum is not that of what it holds")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return fields


def _digest(fields: Mapping[str, Any]) -> str:
    # As they will be read: names are text, tuples are lists.
    plain = json.loads(json.dumps(fields))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
