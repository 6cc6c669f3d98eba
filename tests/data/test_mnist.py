"""The reader of MNIST, on tiny files in its form."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.data import load_mnist
from gpflow_dwp.data.mnist import read_idx
from gpflow_dwp.exceptions import DatasetError

RNG = np.random.default_rng(0)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path, *, packed: bool = True) -> dict[str, np.ndarray]:
    """Seven training and three test images of 4 x 5 pixels."""
    arrays = {
        "train-images-idx3-ubyte": RNG.integers(0, 256, (7, 4, 5)),
        "train-labels-idx1-ubyte": RNG.integers(0, 10, 7),
        "t10k-images-idx3-ubyte": RNG.integers(0, 256, (3, 4, 5)),
        "t10k-labels-idx1-ubyte": RNG.integers(0, 10, 3),
    }
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))
    return arrays


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 4)])
def test_arrays_of_any_rank(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = RNG.integers(0, 256, shape)
    (tmp_path / "array").write_bytes(idx(array))
    np.testing.assert_array_equal(read_idx(tmp_path / "array"), array)


@pytest.mark.parametrize("packed", [True, False])
def test_digits_of_a_folder(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = write_mnist(tmp_path, packed=packed)
    monkeypatch.setenv("GPFLOW_DWP_MNIST", str(tmp_path))
    for digits in (load_mnist(tmp_path), load_mnist()):
        assert (digits.X_train.shape, digits.Y_train.shape) == ((7, 20), (7, 1))
        assert (digits.X_test.shape, digits.Y_test.shape) == ((3, 20), (3, 1))
        images = arrays["train-images-idx3-ubyte"]
        np.testing.assert_allclose(digits.X_train[2].reshape(4, 5), images[2] / 255.0)
        np.testing.assert_array_equal(digits.Y_test[:, 0], arrays["t10k-labels-idx1-ubyte"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no idx file of unsigned bytes"),
        (bytes([0, 0, 13, 1, 0, 0, 0, 0]), "is no idx file of unsigned bytes"),
        (bytes([0, 0, 8, 3, 0, 0]), "ends within its header"),
        (idx(np.zeros([2, 3]))[:-1], r"names the shape \[2, 3\], but holds 5 entries"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_idx(tmp_path / "file")
    (tmp_path / "file.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DatasetError, match=message):
        read_idx(tmp_path / "file.gz")


def test_what_is_not_packed_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(b"not gzip")
    for path in (tmp_path / "file.gz", tmp_path / "nothing"):
        with pytest.raises(DatasetError, match="cannot be read"):
            read_idx(path)


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"train-images-idx3-ubyte.gz: no such file.*_MNIST"):
        load_mnist(tmp_path)
    write_mnist(tmp_path)
    for name, array, message in (
        ("t10k-labels-idx1-ubyte.gz", np.zeros(4), "its labels are not 3 digits"),
        ("t10k-images-idx3-ubyte.gz", np.zeros([3, 5, 4]), "holds no images of one size"),
    ):
        good = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(gzip.compress(idx(array)))
        with pytest.raises(DatasetError, match=message):
            load_mnist(tmp_path)
        (tmp_path / name).write_bytes(good)


def test_without_a_folder_the_published_files_are_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("GPFLOW_DWP_MNIST", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    write_mnist(tmp_path / "files")
    asked = []

    def fetch(cache: object, name: str) -> str:
        asked.append((name, len(cache.registry[name])))  # type: ignore[attr-defined]
        return str(tmp_path / "files" / name)

    monkeypatch.setattr(pooch.Pooch, "fetch", fetch)
    assert load_mnist().X_train.shape == (7, 20)
    assert [length for _, length in asked] == [64] * 4

    def fail(*_: object) -> str:
        raise ValueError("SHA256 hash of downloaded file does not match")

    monkeypatch.setattr(pooch.Pooch, "fetch", fail)
    with pytest.raises(DatasetError, match="does not match; give a folder with the four files"):
        load_mnist()
