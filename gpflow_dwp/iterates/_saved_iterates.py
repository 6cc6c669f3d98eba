"""What a posterior over iterates wrote, read back and checked."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.validation import check_integers

__all__ = ["SavedIterates", "read_saved_iterates"]

Array = npt.NDArray[np.float64]

# A type error, or with Python 3.10 an attribute error: NumPy reads a single array, too, which is no
# archive. A run-time error: a bit that says that the archive is encrypted or compressed otherwise.
_UNREADABLE = (
    AttributeError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class SavedIterates(NamedTuple):
    """What was saved.

    :param header: The kind of posterior, its settings, and ``num_collected``.
    :param state: Arrays by their names.
    """

    header: dict[str, Any]
    state: dict[str, Array]


def read_saved_iterates(path: Path) -> SavedIterates:
    """Read an archive.

    :param path: The file.
    :raises SavedModelError: If it is missing or damaged.
    """
    try:
        # From bytes: NumPy leaves a file open that turns out to be no archive.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            state = dict(archive)
    except _UNREADABLE as error:
        raise SavedModelError(f"{path} cannot be read: {error}") from error
    if "header" not in state:
        raise SavedModelError(f"{path} is damaged: it lacks header.")
    try:
        header = json.loads(str(state.pop("header")))
        if not isinstance(header, dict):
            raise ValueError(f"header must be a JSON object, got {header!r}.")
        check_integers(at_least=0, num_collected=header.get("num_collected"))
    except ValueError as error:
        raise SavedModelError(f"{path} is damaged: {error}") from error
    return SavedIterates(header, state)
