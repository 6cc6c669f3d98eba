"""MNIST's handwritten digits: idx files found in a folder or downloaded, and read."""

from __future__ import annotations

import gzip
import math
import os
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import DatasetError
from gpflow_dwp.optional import import_optional

__all__ = ["MNIST", "load_mnist", "read_idx"]

_FOLDER_VARIABLE = "GPFLOW_DWP_MNIST"
_BASE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
}
_INSTEAD = (
    f"give a folder with the four files {', '.join(_SHA256)}, or name it in the environment "
    f"variable {_FOLDER_VARIABLE}"
)
_UNSIGNED_BYTES = 8


class MNIST(NamedTuple):
    """Images as rows of pixels from 0 to 1, and labels.

    :param X_train: [N, pixels]; of the published files [60000, 784].
    :param Y_train: Labels from 0 to 9, [N, 1].
    :param X_test: [T, pixels]; of the published files [10000, 784].
    :param Y_test: Test labels, [T, 1].
    """

    X_train: npt.NDArray[np.float64]
    Y_train: npt.NDArray[np.int64]
    X_test: npt.NDArray[np.float64]
    Y_test: npt.NDArray[np.int64]


def load_mnist(folder: str | os.PathLike[str] | None = None) -> MNIST:
    """Load the digits, in the order of the files.

    The files are read from ``folder``, else from the folder that the environment variable
    ``GPFLOW_DWP_MNIST`` names, packed by gzip or not; these files are taken as they are, so that
    other images in the same form (Fashion-MNIST) may stand in. Without either, the four published
    files are downloaded on first use, verified by their SHA-256 sums and kept in the user's cache.

    :param folder: Folder that holds the files.
    :raises DatasetError: If a file is missing, damaged, cannot be downloaded, or is not the one
        that was published.
    :raises ImportError: If a download is needed and pooch is not installed.
    """
    paths = _find_files(folder)
    images, labels = [read_idx(path) for path in paths[::2]], [read_idx(p) for p in paths[1::2]]
    for path, pictures, names in zip(paths[::2], images, labels, strict=True):
        if pictures.ndim != 3 or pictures.shape[1:] != images[0].shape[1:]:
            raise DatasetError(f"{path}: holds no images of one size: shape {pictures.shape}")
        if names.shape != pictures.shape[:1] or names.max(initial=0) > 9:
            raise DatasetError(f"{path}: its labels are not {len(pictures)} digits")
    X_train, X_test = (part.reshape(len(part), -1) / 255.0 for part in images)
    Y_train, Y_test = (part.astype(np.int64)[:, None] for part in labels)
    return MNIST(X_train, Y_train, X_test, Y_test)


def read_idx(path: str | os.PathLike[str]) -> npt.NDArray[np.uint8]:
    """Read an array of bytes in idx form: two zeros, the type, the rank, the sizes, the entries.

    :param path: The file; packed by gzip if it ends in ``.gz``.
    :return: The array, of the shape that the file names.
    :raises DatasetError: If the file cannot be read, or is not an idx file of unsigned bytes.
    """
    path = Path(path)
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error
    if len(data) < 4 or data[:3] != bytes([0, 0, _UNSIGNED_BYTES]):
        raise DatasetError(f"{path}: is no idx file of unsigned bytes")
    start = 4 + 4 * data[3]
    if len(data) < start:
        raise DatasetError(f"{path}: ends within its header")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    if len(data) - start != math.prod(shape):
        raise DatasetError(
            f"{path}: names the shape {list(shape)}, but holds {len(data) - start} entries"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _find_files(folder: str | os.PathLike[str] | None) -> list[Path]:
    folder = folder or os.environ.get(_FOLDER_VARIABLE)
    if not folder:
        return _download()
    found = []
    for name in _SHA256:
        packed = Path(folder).expanduser() / name
        either = [path for path in (packed, packed.with_suffix("")) if path.is_file()]
        if not either:
            raise DatasetError(f"{packed}: no such file, nor without .gz; {_INSTEAD}")
        found.append(either[0])
    return found


def _download() -> list[Path]:
    pooch = import_optional("pooch", "cli")
    cache = pooch.create(
        path=Path(pooch.os_cache("gpflow_dwp")) / "MNIST", base_url=_BASE_URL, registry=_SHA256
    )
    try:
        return [Path(cache.fetch(name)) for name in _SHA256]
    except (OSError, ValueError) as error:  # those of requests are OSErrors, too
        raise DatasetError(
            f"MNIST cannot be downloaded and verified: {error}; {_INSTEAD}"
        ) from error
