"""What a posterior over iterates wrote, read back and checked."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import read_arrays, seal, unseal, write_whole
from gpflow_dwp.validation import check_integers, check_path

__all__ = ["SavedIterates", "read_saved_iterates", "saved_iterates_path", "write_saved_iterates"]

_DIGEST = "arrays"


class SavedIterates(NamedTuple):
    """What was saved.

    :param header: The kind of posterior, its settings, and ``num_collected``.
    :param state: Arrays by their names.
    """

    header: dict[str, Any]
    state: dict[str, Array]


def saved_iterates_path(directory: str | os.PathLike[str]) -> Path:
    """Return the file of a directory.

    :param directory: What the user named.
    :raises ValueError: If it is no path.
    """
    check_path(directory=directory)
    return Path(directory) / "iterates.npz"


def write_saved_iterates(path: Path, saved: SavedIterates) -> None:
    """Write an archive, in place of one that is there.

    :param path: The file; its folder is made if it is missing.
    :param saved: What it is to hold.
    """
    header = seal({**saved.header, _DIGEST: _digest(saved.state)})
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array(json.dumps(header)), **saved.state)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, buffer.getvalue())


def read_saved_iterates(path: Path) -> SavedIterates:
    """Read an archive.

    :param path: The file.
    :raises SavedModelError: If it is missing or damaged.
    """
    try:
        state = read_arrays(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SavedModelError(f"{path} cannot be read: {error}") from error
    if "header" not in state:
        raise SavedModelError(f"{path} is damaged: it lacks header.")
    try:
        header = json.loads(str(state.pop("header")))
        if not isinstance(header, dict):
            raise ValueError(f"header must be a JSON object, got {header!r}.")
        header = unseal(header)
        if header.pop(_DIGEST, None) != _digest(state):
            raise ValueError("its arrays are not those that its header tells of")
        check_integers(at_least=0, num_collected=header.get("num_collected"))
    except (ValueError, RecursionError) as error:
        raise SavedModelError(f"{path} is damaged: {error}") from error
    return SavedIterates(header, state)


def _digest(state: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(state.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()
