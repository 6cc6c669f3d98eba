"""Splits of the UCI sets: read as published, verified when downloaded, refused when damaged."""

from __future__ import annotations

import hashlib
import http.server
import io
import sys
import threading
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpflow_dwp.data import UCI_DATASETS, UCISplit, _uci_files, load_uci
from gpflow_dwp.exceptions import DatasetError, TableError

# Columns: input, target, a column in no role, constant input. The target is not the last one.
DATA = np.column_stack([np.arange(20) ** 2.0, np.sin(np.arange(20)), np.arange(20), np.ones(20)])
INPUTS, TARGET = [3, 0], [1]
TRAIN, TEST = [5, 0, 19, 2, 7], [1, 18]


def write(folder: Path, name: str, values: npt.ArrayLike, fmt: str = "%d") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / f"{name}.txt", np.asarray(values), fmt=fmt)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small archive in the layout of the real one: split 2 of yacht, and nothing else."""
    monkeypatch.delenv(_uci_files.FOLDER_VARIABLE, raising=False)
    folder = tmp_path / "UCI_Datasets" / "yacht" / "data"
    write(folder, "data", DATA, "%.18g")
    write(folder, "index_features", INPUTS)
    write(folder, "index_target", TARGET)
    write(folder, "index_train_2", TRAIN)
    write(folder, "index_test_2", TEST)
    return folder.parents[1]


def test_rows_and_columns_are_those_of_the_index_files(archive: Path) -> None:
    split = load_uci("yacht", 2, folder=archive)

    assert (split.name, split.split) == ("yacht", 2)
    np.testing.assert_array_equal(split.X_train, DATA[TRAIN][:, INPUTS])
    np.testing.assert_array_equal(split.Y_train, DATA[TRAIN][:, TARGET])
    np.testing.assert_array_equal(split.X_test, DATA[TEST][:, INPUTS])
    np.testing.assert_array_equal(split.Y_test, DATA[TEST][:, TARGET])


def test_standardised_by_the_training_rows_alone(archive: Path) -> None:
    split = load_uci("yacht", 2, folder=archive)
    (X, Y), (X_test, Y_test) = split.train, split.test

    np.testing.assert_allclose(X[:, 1].mean(), 0.0, atol=1e-15)
    np.testing.assert_allclose(X[:, 1].std(), 1.0)
    np.testing.assert_allclose((Y.mean(), Y.std()), (0.0, 1.0), atol=1e-15)
    mean, scale = DATA[TRAIN].mean(axis=0), DATA[TRAIN].std(axis=0)
    np.testing.assert_allclose(X_test[:, 1], (DATA[TEST, 0] - mean[0]) / scale[0])
    np.testing.assert_allclose(Y_test, (DATA[TEST][:, [1]] - mean[1]) / scale[1])
    np.testing.assert_allclose(split.targets.inverse_transform(Y_test), split.Y_test)
    assert not X[:, 0].any() and not X_test[:, 0].any()  # the constant input


def test_folder_comes_before_the_variable(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPFLOW_DWP_UCI", str(archive))
    assert load_uci("yacht", 2).X_train.shape == (5, 2)

    monkeypatch.setenv("GPFLOW_DWP_UCI", str(tmp_path))
    assert load_uci("yacht", 2, folder=str(archive)).X_train.shape == (5, 2)
    with pytest.raises(DatasetError, match="no such file; the variable GPFLOW_DWP_UCI must name"):
        load_uci("yacht", 2)


@pytest.mark.parametrize("name", ["bostonHousing", "Yacht", "", None, ["yacht"]])
def test_unknown_name(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be one of boston, concrete, .*, yacht, got"):
        load_uci(name)


@pytest.mark.parametrize(
    ("name", "split", "last"),
    [
        ("yacht", 20, 19),
        ("protein", 5, 4),
        ("wine", -1, 19),
        ("yacht", 1.0, 19),
        ("yacht", True, 19),
    ],
)
def test_unknown_split(name: str, split: Any, last: int) -> None:
    with pytest.raises(ValueError, match=f"split must be an integer from 0 to {last} for {name}"):
        load_uci(name, split)


def test_missing_file_is_named(archive: Path) -> None:
    with pytest.raises(DatasetError, match=r"index_train_0\.txt: no such file; folder must name"):
        load_uci("yacht", folder=archive)
    with pytest.raises(DatasetError, match=r"naval-propulsion-plant.data.data\.txt: no such file"):
        load_uci("naval", folder=archive)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("data", b"1 2 3 4\n1 2 x 4\n", r"data\.txt: cannot be read: could not convert .*'x'"),
        ("data", b"1 2 3 4\n1 2 3\n", r"data\.txt: cannot be read: .*number of columns"),
        ("data", b"1 2 3 4\n1 2 nan 4\n", r"data\.txt: nan in row 2, column 3 is not finite"),
        ("data", b"\xff\xfe1 2", r"data\.txt: cannot be read: .*utf-8"),
        ("data", b" \n\n", r"data\.txt: cannot be read: the file is empty"),
        ("data", b"1 2 3 4\n" * 19, r"index_train_2\.txt: 19 is no index of the 19 rows"),
        ("index_train_2", b"0\n1.5\n", r"index_train_2\.txt: 1\.5 is no index of the 20 rows"),
        ("index_train_2", b"0\n-1\n", r"index_train_2\.txt: -1 is no index"),
        ("index_train_2", b"3\n4\n3\n", r"index_train_2\.txt: index 3 is there more than once"),
        ("index_test_2", b"2\n7\n8\n", r"index_test_2\.txt: 2 of its rows are training rows, too"),
        ("index_test_2", b"<html>", r"index_test_2\.txt: cannot be read"),
        ("index_features", b"0\n4\n", r"index_features\.txt: 4 is no index of the 4 columns"),
        ("index_features", b"0\n1\n", r"index_features\.txt: the target, column 1, is among"),
        ("index_target", b"1\n2\n", r"index_target\.txt: names 2 columns as the target, not one"),
    ],
)
def test_damaged_file_is_named(archive: Path, file: str, content: bytes, message: str) -> None:
    (archive / "yacht" / "data" / f"{file}.txt").write_bytes(content)

    with pytest.raises(DatasetError, match=message):
        load_uci("yacht", 2, folder=archive)


def test_line_ends_of_other_systems(archive: Path) -> None:
    for path in (archive / "yacht" / "data").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    np.testing.assert_array_equal(
        load_uci("yacht", 2, folder=archive).X_test, DATA[TEST][:, INPUTS]
    )


def small_split() -> UCISplit:
    return UCISplit("yacht", 0, DATA[:9, :2], DATA[:9, 2:3], DATA[9:, :2], DATA[9:, 2:3])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"name": "wines"}, ValueError, "name must be one of"),
        ({"split": 20}, ValueError, "split must be an integer from 0 to 19"),
        ({"X_train": DATA[:9, 0]}, TableError, r"X_train must have two axes"),
        ({"X_train": DATA[:0, :2]}, TableError, "X_train is empty"),
        ({"X_test": np.full((11, 2), np.nan)}, TableError, "X_test holds nan in row 1, column 1"),
        (
            {"Y_train": DATA[:9, :2]},
            TableError,
            r"Y_train must have shape \[9, 1\] .* \[9, 2\], got \[9, 2\]",
        ),
        ({"Y_test": DATA[:9, :1]}, TableError, r"Y_test must have shape \[11, 1\]"),
        (
            {"X_test": DATA[9:, :3]},
            TableError,
            r"the same columns, got shapes \[9, 2\] and \[11, 3\]",
        ),
    ],
)
def test_split_refuses_parts_that_do_not_fit(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        replace(small_split(), **changes)


def test_split_cannot_be_changed() -> None:
    X = DATA[:9, :2].copy()
    split = replace(small_split(), X_train=X)

    with pytest.raises(FrozenInstanceError):
        split.split = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        split.X_train[0, 0] = 1.0
    X[:] = 0.0
    assert split.X_train.any()
    with pytest.raises(TypeError):
        UCI_DATASETS["mine"] = UCI_DATASETS["yacht"]  # type: ignore[index]


class Server:
    """Serves a folder on this machine and counts what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args, directory=str(folder))

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                asked.append(self.path)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/UCI_Datasets/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@pytest.fixture
def server(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The small archive as a download, with its own sums, and an empty cache."""
    pooch = pytest.importorskip("pooch")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    sums = {
        path.relative_to(archive).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in archive.rglob("*.txt")
    }
    monkeypatch.setattr(_uci_files, "_known_sums", lambda: sums)
    running = Server(archive.parent)
    monkeypatch.setattr(_uci_files, "_BASE_URL", running.url)
    yield running
    running.stop()


def test_download_fetches_each_file_of_the_split_once(
    server: Server, archive: Path, tmp_path: Path
) -> None:
    write(archive / "yacht" / "data", "index_train_3", TRAIN)
    wanted = load_uci("yacht", 2, folder=archive)
    got = load_uci("yacht", 2)

    np.testing.assert_array_equal(got.X_train, wanted.X_train)
    np.testing.assert_array_equal(got.Y_test, wanted.Y_test)
    files = ["data", "index_features", "index_target", "index_train_2", "index_test_2"]
    assert server.asked == [f"/UCI_Datasets/yacht/data/{file}.txt" for file in files]

    server.stop()
    assert load_uci("yacht", 2).X_train.shape == (5, 2)  # from the cache
    kept = tmp_path / "cache" / "gpflow_dwp" / "UCI_Datasets"
    assert load_uci("yacht", 2, folder=kept).X_train.shape == (5, 2)


def test_damaged_cache_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    wanted = load_uci("yacht", 2)
    kept = tmp_path / "cache" / "gpflow_dwp" / "UCI_Datasets" / "yacht" / "data" / "data.txt"
    kept.write_text("1 2 3 4\n" * 20)

    np.testing.assert_array_equal(load_uci("yacht", 2).Y_train, wanted.Y_train)


def test_download_with_a_wrong_sum_is_refused(
    server: Server, archive: Path, tmp_path: Path
) -> None:
    (archive / "yacht" / "data" / "index_train_2.txt").write_text("0\n2\n")

    with pytest.raises(
        DatasetError, match=r"index_train_2\.txt is not the file .*SHA-256.*folder="
    ):
        load_uci("yacht", 2)
    assert not list((tmp_path / "cache").rglob("index_train_2*"))


def test_download_without_the_file(server: Server, archive: Path) -> None:
    (archive / "yacht" / "data" / "data.txt").unlink()

    with pytest.raises(DatasetError, match=r"data\.txt cannot be downloaded: 404 .*folder="):
        load_uci("yacht", 2)


def test_download_without_a_server(server: Server) -> None:
    server.stop()

    with pytest.raises(
        DatasetError, match=r"data\.txt cannot be downloaded: .*folder=, .* variable GPFLOW_DWP_UCI"
    ):
        load_uci("yacht", 2)


@pytest.mark.parametrize("variable", [None, ""])
def test_nothing_is_downloaded_without_sums(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPFLOW_DWP_UCI", raising=False)
    if variable is not None:
        monkeypatch.setenv("GPFLOW_DWP_UCI", variable)
    monkeypatch.setitem(sys.modules, "pooch", None)  # its use would be an ImportError

    with pytest.raises(DatasetError, match="naval-propulsion-plant is not downloaded: .*folder="):
        load_uci("naval")
    with pytest.raises(ImportError, match=r"pooch is needed here .*gpflow-dwp\[cli\]"):
        load_uci("yacht")


def digest(indices: npt.ArrayLike) -> str:
    buffer = io.BytesIO()
    np.savetxt(buffer, np.asarray(indices), fmt="%d")
    return hashlib.sha256(buffer.getvalue()).hexdigest()


@pytest.mark.parametrize("name", sorted(set(UCI_DATASETS) - {"naval"}))
def test_sums_are_those_of_the_published_recipe(name: str) -> None:
    """Gal and Ghahramani's ``split_data_train_test.py``: permutations from NumPy's seed 1."""
    folder, num_data, num_inputs, num_splits = UCI_DATASETS[name]
    sums = _uci_files._known_sums()
    random = np.random.RandomState(1)
    wanted = {"index_features": digest(range(num_inputs)), "index_target": digest([num_inputs])}
    for split in range(num_splits):
        rows = random.choice(num_data, num_data, replace=False)
        num_train = round(0.9 * num_data)
        wanted[f"index_train_{split}"] = digest(rows[:num_train])
        wanted[f"index_test_{split}"] = digest(rows[num_train:])
    found = {path: value for path, value in sums.items() if path.startswith(f"{folder}/")}

    assert len(found.pop(f"{folder}/data/data.txt")) == 64
    assert found == {f"{folder}/data/{file}.txt": value for file, value in wanted.items()}


@pytest.mark.parametrize("name", sorted(UCI_DATASETS))
def test_published_sets(name: str, uci_folder: Path) -> None:
    folder, num_data, num_inputs, num_splits = UCI_DATASETS[name]
    if not (uci_folder / folder).is_dir():
        pytest.skip(f"no {folder} in {uci_folder}")
    files = uci_folder / folder / "data"
    assert int((files / "n_splits.txt").read_text()) == num_splits

    split = load_uci(name, num_splits - 1, folder=uci_folder)

    num_train = round(0.9 * num_data)
    assert split.X_train.shape == (num_train, num_inputs)
    assert split.X_test.shape == (num_data - num_train, num_inputs)
    rows = [np.loadtxt(files / f"index_{side}_{num_splits - 1}.txt") for side in ("train", "test")]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(num_data))
    X, Y = split.train
    np.testing.assert_allclose(Y.std(), 1.0)
    assert np.isfinite(X).all() and np.isfinite(np.concatenate(split.test, axis=1)).all()
    for path, value in _uci_files._known_sums().items():
        if path.startswith(f"{folder}/"):
            content = (uci_folder / path).read_bytes()
            assert hashlib.sha256(content).hexdigest() == value, path
