"""Splits of the UCI sets: read as published, verified when downloaded, refused when damaged."""

from __future__ import annotations

import hashlib
import http.server
import io
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpflow_dwp.data import UCI_DATASETS, load_uci, uci
from gpflow_dwp.exceptions import DatasetError

# Columns: input, target, a column in no role, constant input. The target is not the last one.
DATA = np.column_stack([np.arange(20) ** 2.0, np.sin(np.arange(20)), np.arange(20), np.ones(20)])
INPUTS, TARGET = [3, 0], [1]
TRAIN, TEST = [5, 0, 19, 2, 7], [1, 18]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small archive in the layout of the real one: split 2 of yacht, and nothing else."""
    monkeypatch.delenv("GPFLOW_DWP_UCI", raising=False)
    folder = tmp_path / "UCI_Datasets" / "yacht" / "data"
    folder.mkdir(parents=True)
    np.savetxt(folder / "data.txt", DATA, fmt="%.18g")
    for name, values in {
        "index_features": INPUTS,
        "index_target": TARGET,
        "index_train_2": TRAIN,
        "index_test_2": TEST,
    }.items():
        np.savetxt(folder / f"{name}.txt", values, fmt="%d", newline="\r\n")
    return folder.parents[1]


def test_rows_and_columns_are_those_of_the_index_files(archive: Path) -> None:
    """Would catch a split of other rows, and scales that test rows have a part in."""
    split = load_uci("yacht", 2, folder=archive)
    assert (split.name, split.split) == ("yacht", 2)
    for found, rows, columns in (
        (split.X_train, TRAIN, INPUTS),
        (split.Y_train, TRAIN, TARGET),
        (split.X_test, TEST, INPUTS),
        (split.Y_test, TEST, TARGET),
    ):
        np.testing.assert_array_equal(found, DATA[rows][:, columns])
    (X, Y), (X_test, Y_test) = split.train, split.test
    mean, scale = DATA[TRAIN].mean(axis=0), DATA[TRAIN].std(axis=0)
    np.testing.assert_allclose(X[:, 1], (DATA[TRAIN, 0] - mean[0]) / scale[0])
    np.testing.assert_allclose(X_test[:, 1], (DATA[TEST, 0] - mean[0]) / scale[0])
    np.testing.assert_allclose(Y, (DATA[TRAIN][:, [1]] - mean[1]) / scale[1])
    np.testing.assert_allclose(split.targets.inverse_transform(Y_test), split.Y_test)
    assert not X[:, 0].any() and not X_test[:, 0].any()  # the constant input


def test_folder_comes_before_the_variable(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Would catch files that are taken from elsewhere than they are asked for."""
    monkeypatch.setenv("GPFLOW_DWP_UCI", str(archive))
    assert load_uci("yacht", 2).X_train.shape == (5, 2)
    monkeypatch.setenv("GPFLOW_DWP_UCI", str(tmp_path))
    assert load_uci("yacht", 2, folder=str(archive)).X_train.shape == (5, 2)
    with pytest.raises(DatasetError, match="no such file; the variable GPFLOW_DWP_UCI must name"):
        load_uci("yacht", 2)


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("Yacht", 0, "name must be one of boston, concrete, .*, yacht, got"),
        ("yacht", 20, "split must be an integer from 0 to 19 for yacht"),
        ("protein", 5, "split must be an integer from 0 to 4 for protein"),
    ],
)
def test_unknown_names_and_splits(name: str, split: int, message: str) -> None:
    """Would catch a mistake that is a missing file later."""
    with pytest.raises(ValueError, match=message):
        load_uci(name, split)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("data", b"1 2 3 4\n1 2 x 4\n", "yacht/data: split 2 cannot be read: could not convert"),
        ("data", b"1 2 3 4\n" * 9, "yacht/data: split 2 cannot be read: index 19 is out of bounds"),
        ("index_test_2", None, r"index_test_2\.txt: no such file; folder must name a folder"),
    ],
)
def test_damaged_files_are_named(
    archive: Path, file: str, content: bytes | None, message: str
) -> None:
    """Would catch an error of NumPy's that names no file."""
    path = archive / "yacht" / "data" / f"{file}.txt"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        load_uci("yacht", 2, folder=archive)


@pytest.fixture
def asked(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The small archive on a server with its own sums, an empty cache; the paths asked for."""
    pooch, paths = pytest.importorskip("pooch"), list[str]()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(archive.parent))

        def log_message(self, *_: Any) -> None:
            paths.append(self.path)

    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    sums = {
        path.relative_to(archive).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in archive.rglob("*.txt")
    }
    monkeypatch.setattr(uci, "_known_sums", lambda: sums)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setattr(uci, "_BASE_URL", f"http://127.0.0.1:{server.server_port}/UCI_Datasets/")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield paths
    server.shutdown()
    server.server_close()
    thread.join()


def test_download_fetches_each_file_of_the_split_once(
    asked: list[str], archive: Path, tmp_path: Path
) -> None:
    """Would catch files that are fetched again, and a damaged cache that is believed."""
    wanted = load_uci("yacht", 2, folder=archive)
    for _ in range(2):
        np.testing.assert_array_equal(load_uci("yacht", 2).Y_test, wanted.Y_test)
    files = ["data", "index_features", "index_target", "index_train_2", "index_test_2"]
    assert asked == [f"/UCI_Datasets/yacht/data/{file}.txt" for file in files]
    kept = tmp_path / "cache" / "gpflow_dwp" / "UCI_Datasets"
    (kept / "yacht" / "data" / "data.txt").write_text("1 2 3 4\n" * 20)
    np.testing.assert_array_equal(load_uci("yacht", 2).Y_train, wanted.Y_train)


@pytest.mark.parametrize("is_there", [True, False])
def test_downloads_of_other_files_are_refused(
    asked: list[str], archive: Path, tmp_path: Path, is_there: bool
) -> None:
    """Would catch rows that are not the published ones."""
    path = archive / "yacht" / "data" / "index_train_2.txt"
    path.write_text("0\n2\n") if is_there else path.unlink()
    with pytest.raises(DatasetError, match=r"yacht cannot be downloaded: .*; give a copy .*UCI"):
        load_uci("yacht", 2)
    assert not list((tmp_path / "cache").rglob("index_train_2*"))


def test_nothing_is_downloaded_without_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch files that are taken unseen, and a bare ModuleNotFoundError."""
    monkeypatch.delenv("GPFLOW_DWP_UCI", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)  # its use would be an ImportError
    with pytest.raises(DatasetError, match="naval-propulsion-plant is not downloaded: .*folder="):
        load_uci("naval")
    with pytest.raises(ImportError, match=r"pooch is needed here .*gpflow-dwp\[cli\]"):
        load_uci("yacht")


def digest(indices: npt.ArrayLike) -> str:
    buffer = io.BytesIO()
    np.savetxt(buffer, np.asarray(indices), fmt="%d")
    return hashlib.sha256(buffer.getvalue()).hexdigest()


@pytest.mark.parametrize("name", sorted({*UCI_DATASETS} - {"naval"}))
def test_sums_are_those_of_the_published_recipe(name: str) -> None:
    """Gal and Ghahramani's ``split_data_train_test.py``: permutations from NumPy's seed 1."""
    folder, num_data, num_inputs, num_splits = UCI_DATASETS[name]
    random = np.random.RandomState(1)
    wanted = {"index_features": digest(range(num_inputs)), "index_target": digest([num_inputs])}
    for split in range(num_splits):
        rows = random.choice(num_data, num_data, replace=False)
        num_train = round(0.9 * num_data)
        wanted[f"index_train_{split}"] = digest(rows[:num_train])
        wanted[f"index_test_{split}"] = digest(rows[num_train:])
    sums = uci._known_sums()
    found = {path: value for path, value in sums.items() if path.startswith(f"{folder}/")}
    assert len(found.pop(f"{folder}/data/data.txt")) == 64
    assert found == {f"{folder}/data/{file}.txt": value for file, value in wanted.items()}


@pytest.mark.parametrize("name", sorted(UCI_DATASETS))
def test_published_sets(name: str, uci_folder: Path) -> None:
    """Would catch numbers of rows, inputs or splits that are not those of the files."""
    folder, num_data, num_inputs, num_splits = UCI_DATASETS[name]
    if not (uci_folder / folder).is_dir():
        pytest.skip(f"no {folder} in {uci_folder}")
    split = load_uci(name, num_splits - 1, folder=uci_folder)
    num_train = round(0.9 * num_data)
    assert split.X_train.shape == (num_train, num_inputs)
    assert split.X_test.shape == (num_data - num_train, num_inputs)
    assert np.isfinite(np.concatenate(split.train + split.test, axis=None)).all()
    for path, value in uci._known_sums().items():
        if path.startswith(f"{folder}/"):
            content = (uci_folder / path).read_bytes()
            assert hashlib.sha256(content).hexdigest() == value, path
